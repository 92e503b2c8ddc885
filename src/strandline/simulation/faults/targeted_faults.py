"""Faults that wait for one step of arbitration, and strike when a mistake would show.

Why:    a mistake in a fence, a vote delegation or a report shows within milliseconds; faults at
        random times hardly ever meet that moment.
How:    a group of four voters, L which leads it, O beside it, F and S across, and a third site:
            forgotten-fence   {L, O} are cut off; once F is fenced its power fails, and it returns
                              to {L, O}, a majority with it
            early-report      F lags; {L, O} are cut off; S is appointed, does not reach F, and dies
            late-fence        {L, O} are cut off and a grant begins; before its fence reaches F,
                              F joins {L, O} again, and a leader is elected there
            cut-after-shrink  F is cut off until it has no vote; then {L, O} are cut off, a majority
                              by then
        Each is a script: it changes the cuts, and yields how long to wait. It looks every
        millisecond for what it waits for.
Owns:   the cuts of each fault and the brokers that it took down, until it ends.
Source: decision 0016; docs/internals/simulation.md."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import permutations, product

from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId, GroupId, first_epoch
from strandline.replication.replica.replica import Replica
from strandline.simulation.faults.fault_targets import End, cut
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.scheduler import US_PER_MS

LOOK_MS = 1
LAG_MS = (200, 600)
"""So long F lags before the others are cut off; not for so long that it leaves."""
FENCED_MS = (1, 30)
"""So long after F has moved to the grant's epoch its power fails: its answer is under way."""
BACK_MS = (20, 200)
REPORT_MS = (200, 900)
LED_MS = (150, 600)
"""So long L, or O, leads again before the fence reaches F."""

Script = Iterator[int]


@dataclass(slots=True)
class TargetedFault:
    """One of them. `leader`, `beside`, `fenced` and `appointed` are L, O, F and S."""

    cluster: SimCluster
    rng: random.Random
    group: GroupId = CONTROLLER_GROUP
    leader: BrokerId = NO_BROKER
    beside: BrokerId = NO_BROKER
    fenced: BrokerId = NO_BROKER
    appointed: BrokerId = NO_BROKER
    is_over: bool = False
    _heal: list[End] = field(default_factory=list)
    _down: set[BrokerId] = field(default_factory=set)

    @property
    def old(self) -> frozenset[BrokerId]:
        """The two that are left behind."""
        return frozenset((self.leader, self.beside))

    def part(self, *ways: tuple[frozenset[BrokerId], frozenset[BrokerId]]) -> None:
        """Cut these from each other, both ways, and heal all other cuts."""
        while self._heal:
            self._heal.pop()()
        for some, others in ways:
            pair = sorted(some), sorted(others)
            both = (*product(*pair), *product(pair[1], pair[0]))
            self._heal.append(cut(self.cluster, both))

    def all_but(self, some: frozenset[BrokerId]) -> frozenset[BrokerId]:
        """All other brokers."""
        return frozenset(self.cluster.scenario.brokers) - some

    def isolate(self, some: frozenset[BrokerId]) -> None:
        """Cut these off."""
        self.part((some, self.all_but(some)))

    def fail_power(self, broker: BrokerId) -> None:
        """Until `start`, or the end."""
        self._down.add(broker)
        self.cluster.hosts[broker].fail_power()

    def fail(self, broker: BrokerId, *, takes_disk: bool) -> None:
        """Its power fails, or its process is killed; or it gets another disk. Until `start`, or the
        end."""
        self._down.add(broker)
        if takes_disk:
            self.cluster.disk_losses.lose(broker)
        elif self.rng.random() < 0.5:
            self.cluster.hosts[broker].fail_power()
        else:
            self.cluster.hosts[broker].kill()

    def start(self, broker: BrokerId) -> None:
        """At once, unless an operator keeps it down."""
        self._down.discard(broker)
        host = self.cluster.hosts[broker]
        if broker in self.cluster.kept_down:
            self.cluster.restart(broker)
        elif not host.is_up:
            host.start()

    def end(self) -> None:
        """Everything works again."""
        self.is_over = True
        self.part()
        for broker in sorted(self._down):
            self.cluster.restart(broker)

    def run(self, script: Script) -> None:
        """One step after the other."""
        wait_ms = None if self.is_over else next(script, None)
        if wait_ms is not None:
            self.cluster.scheduler.after(wait_ms * US_PER_MS, lambda: self.run(script))

    # ---- waits -----------------------------------------------------------------------------------

    def find(self, *, is_spare: Callable[["TargetedFault"], BrokerId]) -> Script:
        """Wait for a group to strike. The controller's majority has to be left without L, O and
        whoever `is_spare` names."""
        while not self._cast(is_spare):
            yield LOOK_MS

    def _cast(self, is_spare: Callable[["TargetedFault"], BrokerId]) -> bool:
        seeds = self.cluster.scenario.seeds
        for replica in self.cluster.leading_replicas():
            voters = replica.configuration.all_voters
            is_planned = any(replica.group == plan.group for plan in self.cluster.scenario.groups)
            if not is_planned or len(voters) != 4 or not replica.can_serve_reads:
                continue
            self.group, self.leader = replica.group, replica.self_id
            others = [one for one in voters if one != replica.self_id]
            for roles in self.rng.sample(list(permutations(others)), 6):
                self.beside, self.fenced, self.appointed = roles
                left = [one for one in seeds if one not in {*self.old, is_spare(self)}]
                if 2 * len(left) > len(seeds):
                    return True
        return False

    def granted(self, what: str) -> Script:
        """Wait for the controller's log to say that of the group."""
        while True:
            known = self.cluster.checker.voters.get(self.group)
            if known is not None and known.what == what:
                return
            yield LOOK_MS

    def is_fenced(self) -> Script:
        """Wait for F to be in the epoch of the grant."""
        while True:
            known = self.cluster.checker.voters[self.group]
            replica = self._replica(self.fenced)
            if replica is not None and replica.epoch >= first_epoch(known.grant):
                return
            yield LOOK_MS

    def is_led(self, some: frozenset[BrokerId]) -> Script:
        """Wait for one of these to lead, with a lease."""
        while True:
            found = [one for one in map(self._replica, sorted(some)) if one is not None]
            if any(one.can_serve_reads for one in found):
                return
            yield LOOK_MS

    def has_left(self, broker: BrokerId) -> Script:
        """Wait for the group to be led without that broker's vote, as its leader has it."""
        while True:
            for replica in map(self._replica, sorted(self.old)):
                if replica is None or not replica.is_leader:
                    continue
                if broker not in replica.configuration.all_voters:
                    return
            yield LOOK_MS

    def _replica(self, broker: BrokerId) -> Replica | None:
        member = self.cluster.hosts[broker].program
        return None if member is None else member.replication.replicas.get(self.group)


# ---- the scripts -------------------------------------------------------------------------------


def _forgotten_fence(one: TargetedFault) -> Script:
    yield from one.find(is_spare=lambda cast: cast.fenced)
    one.isolate(one.old)
    yield from one.granted("grant")
    yield from one.is_fenced()
    yield one.rng.randint(*FENCED_MS)
    one.fail_power(one.fenced)
    # It has to meet the controller before it opens its logs, and must not meet S.
    side, appointed = one.old | {one.fenced}, frozenset((one.appointed,))
    one.part((one.old, one.all_but(side)), (side, appointed))
    yield one.rng.randint(*BACK_MS)
    one.start(one.fenced)


def _early_report(one: TargetedFault) -> Script:
    yield from one.find(is_spare=lambda cast: cast.appointed)
    behind, appointed = frozenset((one.fenced,)), frozenset((one.appointed,))
    one.isolate(behind)
    yield one.rng.randint(*LAG_MS)
    one.isolate(one.old)
    yield from one.granted("appointed")
    one.part((one.old, one.all_but(one.old)), (behind, appointed))
    yield one.rng.randint(*REPORT_MS)
    one.fail_power(one.appointed)
    one.isolate(one.old)


def _late_fence(one: TargetedFault) -> Script:
    yield from one.find(is_spare=lambda cast: cast.fenced)
    one.isolate(one.old)
    yield from one.granted("grant")
    side = one.old | {one.fenced}
    one.isolate(side)
    yield from one.is_led(side)
    yield one.rng.randint(*LED_MS)
    one.part((one.old, one.all_but(side)))
    yield from one.is_fenced()
    one.isolate(one.old)


def _cut_after_shrink(one: TargetedFault) -> Script:
    yield from one.find(is_spare=lambda cast: cast.fenced)
    side = one.old | {one.appointed}
    one.part((side, frozenset((one.fenced,))))
    yield from one.has_left(one.fenced)
    one.isolate(one.old)


def _begin(
    script: Callable[[TargetedFault], Script],
) -> Callable[[SimCluster, random.Random], End | None]:
    def begin(cluster: SimCluster, rng: random.Random) -> End | None:
        one = TargetedFault(cluster, rng)
        one.run(script(one))
        return one.end

    return begin


forgotten_fence = _begin(_forgotten_fence)
early_report = _begin(_early_report)
late_fence = _begin(_late_fence)
cut_after_shrink = _begin(_cut_after_shrink)
