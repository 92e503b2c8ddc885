"""This broker's own labels: what it registers with, and what its data directory keeps of them.

Why:    the controller changes labels while a broker runs, and the broker keeps them when it starts
        again.
How:    configured now + kept in the data directory --carried_over--> registered. The data directory
        then keeps the labels that the controller has, and each later change. Every component, on
        this broker too, reads labels from the committed state.
Owns:   what is known to be kept.
Source: decision 0015."""

import logging
from collections.abc import Callable

from strandline.model.cluster import Broker, Labels, StoredLabels
from strandline.placement.topology.labels import carried_over

_log = logging.getLogger("strandline.broker")


class OwnLabels:
    """See the module. `configured`: the labels of the configuration; `kept`: those of the data
    directory; `keep` stores other labels there, and may raise OSError."""

    def __init__(
        self,
        configured: Labels,
        kept: StoredLabels | None,
        keep: Callable[[StoredLabels], None] | None,
    ) -> None:
        self.configured = configured
        self._kept = kept
        self._keep = keep
        self._seen: Broker | None = None

    def present(self) -> Labels:
        """The labels, as this broker knows them before it has heard from the controller."""
        kept = self._kept
        if kept is None:
            return self.configured
        return carried_over(kept.labels, said=kept.configured, says=self.configured)

    def note(self, own: Broker) -> None:
        """This start of this broker is registered with these labels: cheap if that is known."""
        if own is self._seen:
            return
        before, self._seen = self._seen, own
        kept = StoredLabels(own.labels, self.configured)
        if before is None and own.labels != self.configured:
            said = _text(self.configured)
            _log.info("labels: %s; the configuration says %s", _text(own.labels), said)
        elif before is not None and own.labels != before.labels:
            _log.info("labels were changed to %s", _text(own.labels))
        if kept == self._kept or self._keep is None:
            return
        try:
            self._keep(kept)
        except OSError as error:
            # The controller has them: without a copy here its labels count.
            _log.warning("cannot store the labels in the data directory: %s", error)
            return
        self._kept = kept


def _text(labels: Labels) -> str:
    return " ".join(f"{name}={value}" for name, value in labels.as_dict().items()) or "none"
