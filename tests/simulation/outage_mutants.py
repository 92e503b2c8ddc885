"""Mistakes planted on purpose in what lets a group go on without its quorum, and in promotion.

Each is found by the second family of seeds (`simulation.outage_swarm`); see `mutants`.
`python -m tests.simulation.outage_hunt` finds seeds anew.

Source: the rules of docs/decisions/0016, 0020, 0025 and 0027."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from strandline.broker.fetch import nearer_replica
from strandline.broker.fetch.fetching import FetchCall
from strandline.broker.fetch.nearest_replica import SentOn
from strandline.broker.groups.moving import Moving
from strandline.broker.operations.outages import OutageWatch
from strandline.config.topic import TopicConfig
from strandline.controller.arbitration.arbiter import GroupVoters
from strandline.controller.balancer.health import Condition
from strandline.controller.commands import ReportVoters, RequestVoters
from strandline.controller.decide import declared_losses, grants
from strandline.controller.outages import judging
from strandline.controller.records import LeaderAppointed, ReplicasDeclaredLost
from strandline.controller.state import ControllerState
from strandline.model.cluster import Loss, Partition, Roles
from strandline.model.ids import BrokerId, GroupId, grant_of
from strandline.raft.election.arbitration import Arbitration
from strandline.raft.events import PersistState
from strandline.raft.messages import Fence, Fenced
from strandline.replication.liveness import fencing
from strandline.replication.liveness.fencing import FencedGroup
from strandline.replication.replica.replica import Replica
from strandline.simulation.scenarios.scenario import PlannedFault, Scenario
from strandline.simulation.swarm.outage_swarm import draw_outages
from strandline.simulation.swarm.swarm import run_scenario

Plant = Callable[[pytest.MonkeyPatch], None]

LOSSES = ("spare-disk-lost", "zone-power-failure", "region-power-failure", "power-failure")
CUTS = ("region-cut", "isolation", "split", "one-way-cut", "kill-leader")


def appoint_whoever_answers(patch: pytest.MonkeyPatch) -> None:
    """R3: one member is enough."""
    patch.setattr(GroupVoters, "may_appoint", lambda self, holders: bool(holders))


def appoint_observers(patch: pytest.MonkeyPatch) -> None:
    """An observer that was fenced leads, where its log ends as the best one does."""
    honest = grants._successor
    ends: dict[BrokerId, Fenced] = {}

    def successor(partition: Partition, best: Fenced, fenced: dict[BrokerId, Fenced]) -> Roles:
        ends.clear()
        ends.update(fenced)
        return honest(partition, best, fenced)

    def appointed(**told: Any) -> LeaderAppointed:
        end = told["last_epoch"], told["last_index"]
        for broker in told["observers"]:
            one = ends.get(broker)
            if one is not None and (one.last_epoch, one.last_index) == end:
                others = tuple(other for other in told["observers"] if other != broker)
                voters = (*told["voters"], broker)
                told.update(leader=broker, voters=voters, observers=others)
                break
        return LeaderAppointed(**told)

    patch.setattr(grants, "_successor", successor)
    patch.setattr(grants, "LeaderAppointed", appointed)


def appoint_a_log_that_is_not_the_best(patch: pytest.MonkeyPatch) -> None:
    """R4: the first of those that were fenced leads, whatever its log."""
    honest = GroupVoters.candidates

    def candidates(self: GroupVoters, answers: Mapping[BrokerId, Fenced]) -> list[BrokerId]:
        best = honest(self, answers)
        return [min(answers, key=lambda one: answers[one].last_index)] if best else []

    patch.setattr(GroupVoters, "candidates", candidates)


def believe_a_lost_disk(patch: pytest.MonkeyPatch) -> None:
    """Who has lost its log takes part as if that had always been empty."""
    patch.setattr(ControllerState, "has_lost", lambda self, broker, group: False)


def forget_who_was_granted(patch: pytest.MonkeyPatch) -> None:
    """R3: only the voters that were reported last count, not those granted since."""
    patch.setattr(GroupVoters, "possible", property(lambda self: (self.stable,)))


def answer_a_fence_that_is_not_durable(patch: pytest.MonkeyPatch) -> None:
    """Who was fenced tells so, and has forgotten it after a crash."""
    honest = Arbitration.on_fence

    def on_fence(
        self: Arbitration, sender: BrokerId, message: Fence, *, leader_alive: bool
    ) -> None:
        effects = self._state.effects
        begin = len(effects)
        honest(self, sender, message, leader_alive=leader_alive)
        effects[begin:] = [one for one in effects[begin:] if not isinstance(one, PersistState)]

    patch.setattr(Arbitration, "on_fence", on_fence)


def wait_for_no_promise(patch: pytest.MonkeyPatch) -> None:
    """Somebody is appointed though an earlier leader has its lease."""
    honest = fencing._answer

    def answer(
        group: GroupId, fenced: Fenced, promised_ms: int, silent: tuple[BrokerId, ...]
    ) -> FencedGroup:
        return honest(group, fenced, 0, silent)

    patch.setattr(fencing, "_answer", answer)


def change_voters_unannounced(patch: pytest.MonkeyPatch) -> None:
    """R2: the leader begins a change of voters, and the controller does not know."""
    honest = Moving._ask

    def ask(self: Moving, command: RequestVoters | ReportVoters) -> None:
        replica = self._replication.replicas.get(command.group)
        if replica is None or not isinstance(command, RequestVoters):
            honest(self, command)
            return
        replica.change_configuration(
            voters=command.voters,
            observers=command.observers,
            min_insync=replica.configuration.min_insync,
            version=replica.configuration.version + 1,
        )

    patch.setattr(Moving, "_ask", ask)


def report_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """R6: what is in force is reported, though it may yet be lost."""
    honest = Moving._step

    def step(self: Moving, replica: Replica, partition: Partition, config: TopicConfig) -> bool:
        present = replica.configuration
        is_begun = partition.version < present.version == partition.last_version
        if is_begun and not present.is_joint and grant_of(replica.epoch) == partition.grant:
            told = ReportVoters(partition.group, present.version, present.voters, replica.epoch)
            self._ask(told)
        return honest(self, replica, partition, config)

    patch.setattr(Moving, "_step", step)


def hold_no_repair(patch: pytest.MonkeyPatch) -> None:
    """The balancer mends as if no zone were down."""
    honest = OutageWatch.look

    def look(
        self: OutageWatch, condition: Condition, silent_since_ms: Mapping[BrokerId, int]
    ) -> Condition:
        honest(self, condition, silent_since_ms)
        return condition

    patch.setattr(OutageWatch, "look", look)


def take_nothing_for_down(patch: pytest.MonkeyPatch) -> None:
    """Brokers are silent, and no zone or region is ever down, in the controller's log either."""
    patch.setattr(judging, "is_down", lambda share, marks, *, was_down: False)


def tell_who_reads_late_of_a_divergence(patch: pytest.MonkeyPatch) -> None:
    """A replica takes what a consumer has read elsewhere, and it has not yet, for another log."""
    honest = FetchCall._has_diverged

    def has_diverged(self: FetchCall, fetch: Any, replica: Replica) -> bool:
        leads = SimpleNamespace(is_leader=True, log=replica.log)
        return honest(self, fetch, leads)  # type: ignore[arg-type]

    patch.setattr(FetchCall, "_has_diverged", has_diverged)


def send_readers_round_and_round(patch: pytest.MonkeyPatch) -> None:
    """The leader sends a consumer on that has just come back, and to itself."""
    patch.setattr(SentOn, "is_spared", lambda *_: False)
    patch.setattr(nearer_replica, "nearest", lambda path, leader, places: (leader,))


def show_less_than_is_at_risk(patch: pytest.MonkeyPatch) -> None:
    """What is on the best log is said to be safe, as most tools say it."""
    honest = declared_losses._loss

    def loss(*arguments: Any) -> Loss:
        found = honest(*arguments)
        return replace(found, committed=found.end)

    patch.setattr(declared_losses, "_loss", loss)


def appoint_another_than_was_named(patch: pytest.MonkeyPatch) -> None:
    """Whoever was fenced and has the shortest log goes on, not the one that was shown."""
    patch.setattr(
        grants,
        "_declared",
        lambda partition, best, fenced, cluster: (
            min(fenced, key=lambda one: fenced[one].last_index) if partition.is_declared else best
        ),
    )


def leave_the_observer_that_was_chosen_unfenced(patch: pytest.MonkeyPatch) -> None:
    """An observer was shown to go on; a voter is appointed without waiting for it, if one is
    left."""
    record = ControllerState._on_replicas_declared_lost

    def declared(self: ControllerState, told: ReplicasDeclaredLost) -> None:
        known, loss = self.cluster.groups[told.group], told.loss
        voters = {one for each in known.possible for one in each}
        kept = tuple(one for one in loss.survivors if one in voters) or loss.survivors
        record(self, told)
        self._put(replace(self.cluster.groups[told.group], acting=kept))

    patch.setattr(ControllerState, "_on_replicas_declared_lost", declared)
    patch.setattr(grants, "_declared", lambda partition, best, fenced, cluster: best)


@dataclass(frozen=True)
class OutageMutant:
    """`seed` finds `plant`, with faults of these `kinds` alone, where any are named; `promise` is
    what it breaks, where nothing else is judged. The seed is a short cut, and may go stale: others
    that find it draw `fault`."""

    plant: Plant
    seed: int
    promise: str = ""
    kinds: Sequence[str] = ()
    fault: str = ""

    def seeds(self) -> Iterator[int]:
        """One after the other, until one finds it."""
        yield self.seed
        for seed in range(1, 1_200 if self.fault else 60):
            kinds = {one.kind for one in draw_outages(seed).faults or ()} if self.fault else ()
            if not self.fault or self.fault in kinds:
                yield seed

    def scenario(self, seed: int) -> Scenario:
        """What that seed draws, with faults of these kinds."""
        drawn = draw_outages(seed)
        if not self.kinds:
            return drawn
        rng = random.Random(f"mutant {seed}")
        planned: list[PlannedFault] = []
        at_ms = 0
        while (at_ms := at_ms + rng.randint(200, 1_500)) < drawn.active_ms:
            kind, duration_ms = rng.choice(self.kinds), rng.randint(300, 4_000)
            planned.append(PlannedFault(at_ms, kind, duration_ms, rng.getrandbits(32)))
        return replace(drawn, faults=tuple(planned), changes=())

    def violation(self, seed: int) -> str | None:
        """What that seed finds."""
        return run_scenario(self.scenario(seed)).violation


OUTAGE_MUTANTS: Sequence[OutageMutant] = (
    OutageMutant(appoint_observers, 2, "PromotionKeepsRpoZero"),
    OutageMutant(believe_a_lost_disk, 35, "PromotionKeepsRpoZero", LOSSES),
    OutageMutant(appoint_whoever_answers, 5031, "AtMostOneSuccessor", CUTS),
    OutageMutant(appoint_a_log_that_is_not_the_best, 112, "", LOSSES),
    OutageMutant(forget_who_was_granted, 1, "", CUTS),
    OutageMutant(
        answer_a_fence_that_is_not_durable, 2779, "AtMostOneSuccessor", fault="forgotten-fence"
    ),
    OutageMutant(wait_for_no_promise, 123, "NoStaleLeaderRead", fault="late-fence"),
    OutageMutant(change_voters_unannounced, 157, "LeaderCompleteness"),
    OutageMutant(report_before_the_commit, 235, "LeaderCompleteness"),
    OutageMutant(hold_no_repair, 216, "RepairHeldIffZoneDown"),
    OutageMutant(take_nothing_for_down, 216, "RepairHeldIffZoneDown"),
    OutageMutant(tell_who_reads_late_of_a_divergence, 435),
    OutageMutant(send_readers_round_and_round, 15, "Progress"),
    OutageMutant(show_less_than_is_at_risk, 160, "OnlyShownIsLost"),
    OutageMutant(appoint_another_than_was_named, 316, "OnlyShownIsLost"),
    OutageMutant(leave_the_observer_that_was_chosen_unfenced, 333, "OnlyShownIsLost"),
)
