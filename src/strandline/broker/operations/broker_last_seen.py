"""For how long each broker has been silent, across changes of the controller.

Why:    a controller that counts from its own first look never replaces a lost broker if controllers
        change more often than a replacement takes.
How:    The active controller records which brokers have been silent for a while, and for how long
        by its own clock. It records again when that has grown by half, and when a broker is heard.
            Every broker adds the time since it replayed the record, by its own clock, while it
        hears the controller, which would have recorded a return. So a new controller starts with a
        time that is never too long, and compares no two clocks. Time that a process slept through
        does not count.
            For people the controller also records since when by the clock on its wall. Controllers
        keep what the first of them recorded.
Owns:   how long each recorded silence has been watched here.
Source: decision 0010, "Damping"."""

from dataclasses import dataclass
from uuid import UUID

from strandline.base.clock import Clock
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.controller.balancer.health import UNSEEN_MS_MAX, Condition, own_look_ms
from strandline.controller.outage_commands import LastSeenNote, NoteLastSeen
from strandline.controller.records import (
    BrokerRegistered,
    BrokerUnregistered,
    Record,
)
from strandline.model.ids import BrokerId


@dataclass(slots=True)
class _Watched:
    """`watched_ms`: for how long this broker has watched the silence since `noted_ms` was
    recorded."""

    noted_ms: int
    watched_ms: int = 0


class BrokerLastSeen:
    """See the module. `look` is called every second, on every broker."""

    def __init__(self, *, clock: Clock, controller: ControllerHost) -> None:
        self._clock = clock
        self._controller = controller
        # The brokers that are recorded as silent.
        self._watched: dict[BrokerId, _Watched] = {}
        self._looked_ms = clock.monotonic_ms()
        controller.on_applied.append(self._on_applied)
        controller.on_adopted.append(self._on_adopted)

    def look(self) -> None:
        """Add the time since the last look."""
        now = self._clock.monotonic_ms()
        passed_ms, self._looked_ms = min(now - self._looked_ms, UNSEEN_MS_MAX), now
        if self._controller.is_heard:
            for one in self._watched.values():
                one.watched_ms += passed_ms

    @property
    def known_ms(self) -> dict[BrokerId, int]:
        """{broker that is recorded as silent: for how long at least}"""
        return {broker: one.noted_ms + one.watched_ms for broker, one in self._watched.items()}

    def notes(self, condition: Condition, lost_after_ms: int) -> NoteLastSeen | None:
        """What the active controller should record now."""
        now = self._clock.monotonic_ms()
        noted = self._controller.cluster.silent_ms
        wanted = [
            LastSeenNote(one, before, None) for one, before in noted.items() if one in condition.up
        ]
        since_wall_ms = self.silent_since_ms(condition)
        for broker, since_ms in condition.down_since_ms.items():
            lasted_ms, before_ms = now - since_ms, noted.get(broker)
            if lasted_ms >= max(own_look_ms(lost_after_ms), (before_ms or 0) * 3 // 2):
                note = LastSeenNote(broker, before_ms, lasted_ms, since_wall_ms[broker])
                wanted.append(note)
        return NoteLastSeen(tuple(wanted)) if wanted else None

    def silent_since_ms(self, condition: Condition) -> dict[BrokerId, int]:
        """{silent broker: since when, in ms since 1970}: by the log, or else by what this broker
        heard itself, as a controller or not."""
        now, wall_ms = self._clock.monotonic_ms(), self._clock.wall_ms()
        recorded = self._controller.cluster.silent_since_ms
        return {
            broker: recorded[broker]
            if broker in recorded
            else wall_ms - max(now - since_ms, self._controller.silence_ms(broker) or 0)
            for broker, since_ms in condition.down_since_ms.items()
        }

    def _on_applied(self, record: Record) -> None:
        if not isinstance(record, BrokerRegistered | BrokerUnregistered):
            return
        silent_ms = record.silent_ms if isinstance(record, BrokerRegistered) else None
        self._note(record.id, silent_ms)

    def _on_adopted(self, _: dict[str, UUID]) -> None:
        recorded = self._controller.cluster.silent_ms
        for broker in {*self._watched, *recorded}:
            self._note(broker, recorded.get(broker))

    def _note(self, broker: BrokerId, silent_ms: int | None) -> None:
        if silent_ms is None:
            self._watched.pop(broker, None)
        elif broker not in self._watched or self._watched[broker].noted_ms != silent_ms:
            self._watched[broker] = _Watched(silent_ms)
