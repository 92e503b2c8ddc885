"""For how long brokers have been silent, whoever was the controller meanwhile.

Why:    a controller that counts from its own first look never replaces a lost broker where
        controllers change more often than that takes.
How:    the active controller has it taken down who has been silent for a while, and for how long by
        its own clock; again when that is half as much more; and that it is heard again. Every
        broker adds the time since it has replayed that, by its own clock, as long as it hears the
        controller, who would have said if the other was heard: so what a new controller begins
        with is never more than the truth, and no clock is compared with another's. What a process
        slept through is not counted.
Owns:   how long each silence that was taken down has been watched here.
Source: decision 0010, "Damping"."""

from dataclasses import dataclass

from strandline.base.clock import Clock
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.controller.balancer.health import UNSEEN_MS_MAX, Condition, own_look_ms
from strandline.controller.commands import NoteSilences, SilenceNote
from strandline.controller.records import (
    BrokerRegistered,
    BrokerUnregistered,
    Record,
)
from strandline.model.ids import BrokerId


@dataclass(slots=True)
class _Watched:
    """`watched_ms`: for how long it has been so here since `noted_ms` was taken down."""

    noted_ms: int
    watched_ms: int = 0


class BrokerLastSeen:
    """See the module. `look` is called every second, on every broker."""

    def __init__(self, *, clock: Clock, controller: ControllerHost) -> None:
        self._clock = clock
        self._controller = controller
        # The brokers that are taken down as silent.
        self._watched: dict[BrokerId, _Watched] = {}
        self._looked_ms = clock.monotonic_ms()
        controller.on_applied.append(self._on_applied)

    def look(self) -> None:
        """Add the time since the last look."""
        now = self._clock.monotonic_ms()
        passed_ms, self._looked_ms = min(now - self._looked_ms, UNSEEN_MS_MAX), now
        if self._controller.is_heard:
            for one in self._watched.values():
                one.watched_ms += passed_ms

    @property
    def known_ms(self) -> dict[BrokerId, int]:
        """{broker that is taken down as silent: for how long at least}"""
        return {broker: one.noted_ms + one.watched_ms for broker, one in self._watched.items()}

    def notes(self, condition: Condition, lost_after_ms: int) -> NoteSilences | None:
        """What the active controller should have taken down now."""
        now = self._clock.monotonic_ms()
        noted = self._controller.cluster.silent_ms
        wanted = [
            SilenceNote(one, before, None) for one, before in noted.items() if one in condition.up
        ]
        for broker, since_ms in condition.down_since_ms.items():
            lasted_ms, before_ms = now - since_ms, noted.get(broker)
            if lasted_ms >= max(own_look_ms(lost_after_ms), (before_ms or 0) * 3 // 2):
                wanted.append(SilenceNote(broker, before_ms, lasted_ms))
        return NoteSilences(tuple(wanted)) if wanted else None

    def _on_applied(self, record: Record) -> None:
        if not isinstance(record, BrokerRegistered | BrokerUnregistered):
            return
        silent_ms = record.silent_ms if isinstance(record, BrokerRegistered) else None
        if silent_ms is None:
            self._watched.pop(record.id, None)
        elif record.id not in self._watched or self._watched[record.id].noted_ms != silent_ms:
            self._watched[record.id] = _Watched(silent_ms)
