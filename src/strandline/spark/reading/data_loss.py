"""Records that are gone before they were read: an error, or a line in the log.

Why:    failOnDataLoss decides, in one place, so that no path passes over lost records in silence.
Source: Spark's guide to its Kafka connector, `failOnDataLoss`."""

import logging

from strandline.base.errors import StrandlineError

_LOG = logging.getLogger(__name__)
_HINT = (
    "records that were not read yet are gone, by retention or because the topic was made anew; "
    "with failOnDataLoss=false the query goes on with what there is"
)


class DataLossError(StrandlineError):
    """Records are gone before they were read. Pickles as its message alone, as Spark needs it."""


class DataLoss:
    """`fails`: the value of failOnDataLoss."""

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails

    def report(self, what: str) -> None:
        """Raises DataLossError, or logs a warning."""
        if self.fails:
            raise DataLossError(f"{what}: {_HINT}")
        _LOG.warning("%s: going on, for failOnDataLoss is false", what)
