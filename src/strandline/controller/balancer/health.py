"""Which brokers are lost, which are only down, and which may get replicas. Pure.

Why:    copies are expensive and most silences are short: a broker that reboots, or that comes and
        goes, must not start any move.
How:    up --silent--> down --for broker.lost.after.ms--> lost;  down --heard--> up
        lost --up for a while--> up.  A broker must also be up for "a while" before it gets
        replicas; that time doubles with each time that it went down lately.
            A new controller begins with the silences in the log (`silent_ms`), and looks for a
        while itself (`own_look_ms`) before it finds any broker lost. Time in which its own process
        did not run does not count.
Owns:   since when each broker is up or down, on the active controller.
Source: decision 0010."""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from strandline.controller.balancer.reasons import Wait
from strandline.model.ids import BrokerId

SPARED_MS_MAX = 24 * 60 * 60 * 1_000
"""After this much silence a broker in maintenance is lost, too."""
NO_SILENCE: Mapping[BrokerId, int] = {}
SETTLE_MS = 10_000
"""How long a broker must be up before it may get replicas; never longer than it takes to be
lost."""
DOWNS_MAX = 20
UNSEEN_MS_MAX = 5_000
"""The largest part of the time between two looks that counts as silence."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of the brokers at one time."""

    up: frozenset[BrokerId] = frozenset()
    settled: frozenset[BrokerId] = frozenset()
    """The brokers that have been up for long enough to get replicas."""
    lost: frozenset[BrokerId] = frozenset()
    """The balancer replaces their replicas. A broker that has just returned is still lost."""
    absent: frozenset[BrokerId] = frozenset()
    """Down for at least as long as a broker takes to settle: they get no copies."""
    down_since_ms: Mapping[BrokerId, int] = field(default_factory=dict)

    spared: frozenset[BrokerId] = frozenset()
    """The brokers in maintenance."""

    full: frozenset[BrokerId] = frozenset()
    """Their disks are too full for more replicas."""

    overfull: frozenset[BrokerId] = frozenset()
    """Those that are full for more than a moment: replicas move away from there."""
    held: Mapping[BrokerId, Wait] = field(default_factory=dict)
    """{broker that is down, and not lost because of an outage: why}"""
    is_sure: bool = True
    """Whether this controller has looked for long enough to find a broker lost."""

    @property
    def takers(self) -> frozenset[BrokerId]:
        """The brokers that may get replicas now."""
        return self.settled - self.full

    def of(self, broker: BrokerId) -> str:
        """One word for a broker: up, settling, down or lost."""
        if broker in self.lost:
            return "lost"
        if broker in self.down_since_ms:
            return "down"
        return "up" if broker in self.settled else "settling"

    @property
    def is_calm(self) -> bool:
        """Whether every broker is up and has been for a while."""
        return not self.down_since_ms and self.settled == self.up and not self.lost


@dataclass(slots=True)
class _Seen:
    is_up: bool
    since_ms: int
    looked_ms: int
    """The last change that this controller saw itself."""
    is_lost: bool = False
    is_returning: bool = False
    """Whether it was lost, and has not been up for long enough since then."""
    downs_ms: deque[int] = field(default_factory=lambda: deque(maxlen=DOWNS_MAX))
    """When it went down, not longer ago than brokers take to be lost."""


class Health:
    """See the module."""

    def __init__(self) -> None:
        self._seen: dict[BrokerId, _Seen] = {}
        self._stepped_ms: int | None = None
        self._began_ms = 0
        """Since when this controller looks, without the time that its process did not run."""

    def step(
        self,
        now_ms: int,
        *,
        brokers: Collection[BrokerId],
        alive: Collection[BrokerId],
        lost_after_ms: int,
        spared: Collection[BrokerId] = (),
        silent_ms: Mapping[BrokerId, int] = NO_SILENCE,
    ) -> Condition:
        """Look at the registered brokers, and which of them are heard now. `spared`: the brokers in
        maintenance, which get no replicas, and are lost much later. `silent_ms`: {broker: how long
        it was silent before, at least}, for the brokers that controllers did not hear."""
        self._pass_over(now_ms)
        self._seen = {one: seen for one, seen in self._seen.items() if one in brokers}
        for broker in brokers:
            is_up = broker in alive
            if broker not in self._seen:
                since_ms = now_ms if is_up else now_ms - silent_ms.get(broker, 0)
                self._seen[broker] = _Seen(is_up, since_ms, now_ms)
            seen = self._seen[broker]
            if seen.is_up and not is_up:
                seen.downs_ms.append(now_ms)
            if seen.is_up != is_up:
                seen.is_up, seen.since_ms, seen.looked_ms = is_up, now_ms, now_ms
                seen.is_returning = seen.is_lost
            while seen.downs_ms and now_ms - seen.downs_ms[0] > lost_after_ms:
                seen.downs_ms.popleft()
            lasted_ms = now_ms - seen.since_ms
            patience_ms = max(lost_after_ms, SPARED_MS_MAX) if broker in spared else lost_after_ms
            if not is_up:
                is_sure = now_ms - seen.looked_ms >= own_look_ms(lost_after_ms)
                seen.is_lost = seen.is_returning or (is_sure and lasted_ms >= patience_ms)
            elif lasted_ms >= _settle_ms(seen, lost_after_ms):
                seen.is_lost = seen.is_returning = False
        return self._condition(now_ms, lost_after_ms, frozenset(spared))

    def _pass_over(self, now_ms: int) -> None:
        """Time in which this process did not run counts as silence of no broker."""
        if self._stepped_ms is None:
            self._began_ms = now_ms
        else:
            unseen_ms = now_ms - self._stepped_ms - UNSEEN_MS_MAX
            self._began_ms += max(0, unseen_ms)
            for seen in self._seen.values() if unseen_ms > 0 else ():
                if not seen.is_up:
                    seen.since_ms += unseen_ms
                    seen.looked_ms += unseen_ms
        self._stepped_ms = now_ms

    def _condition(self, now_ms: int, lost_after_ms: int, spared: frozenset[BrokerId]) -> Condition:
        up = {one: seen for one, seen in self._seen.items() if seen.is_up}
        down = {one: seen.since_ms for one, seen in self._seen.items() if not seen.is_up}
        absent_ms = min(SETTLE_MS, lost_after_ms)
        return Condition(
            up=frozenset(up),
            settled=frozenset(
                one
                for one, seen in up.items()
                if one not in spared and now_ms - seen.since_ms >= _settle_ms(seen, lost_after_ms)
            ),
            lost=frozenset(one for one, seen in self._seen.items() if seen.is_lost),
            absent=frozenset(one for one, since in down.items() if now_ms - since >= absent_ms),
            down_since_ms=down,
            spared=spared,
            is_sure=now_ms - self._began_ms >= own_look_ms(lost_after_ms),
        )


def own_look_ms(lost_after_ms: int) -> int:
    """How long a controller itself must have missed a broker before it may be lost: a new
    controller has not heard all of them yet."""
    return min(SETTLE_MS, lost_after_ms // 4)


def _settle_ms(seen: _Seen, lost_after_ms: int) -> int:
    """A broker that went down twice lately must be up for four times as long."""
    return int(min(SETTLE_MS << len(seen.downs_ms), lost_after_ms))
