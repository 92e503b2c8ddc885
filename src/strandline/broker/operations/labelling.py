"""This broker's own labels: what it registers with, and what its data directory keeps of them.

Why:    labels are changed while a broker runs, by the controller's decision; they are still so when
        it starts again.
How:    configured now + kept in the data directory --carried_over--> registered; what the
        controller then says they are is kept, and so is every later change. Everybody who needs a
        broker's labels, this one too, reads them of the committed state.
Owns:   what is known to be kept.
Source: decision 0015."""

import logging
from collections.abc import Callable

from strandline.model.cluster import Broker, KeptLabels, Labels
from strandline.placement.topology.labels import carried_over

_log = logging.getLogger("strandline.broker")


class OwnLabels:
    """See the module. `configured`: what the configuration says; `kept`: what the data directory
    has; `keep` puts other labels there, and may raise OSError."""

    def __init__(
        self,
        configured: Labels,
        kept: KeptLabels | None,
        keep: Callable[[KeptLabels], None] | None,
    ) -> None:
        self.configured = configured
        self._kept = kept
        self._keep = keep
        self._seen: Broker | None = None

    def present(self) -> Labels:
        """The labels, as far as this broker knows before it has heard from the controller."""
        kept = self._kept
        if kept is None:
            return self.configured
        return carried_over(kept.labels, said=kept.configured, says=self.configured)

    def note(self, own: Broker) -> None:
        """This broker, since its start, is registered so: cheap where that is known."""
        if own is self._seen:
            return
        before, self._seen = self._seen, own
        kept = KeptLabels(own.labels, self.configured)
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
            # The controller knows them: without a copy here they are as they are there.
            _log.warning("the labels cannot be kept in the data directory: %s", error)
            return
        self._kept = kept


def _text(labels: Labels) -> str:
    return " ".join(f"{name}={value}" for name, value in labels.as_dict().items()) or "none"
