"""A cluster in which replicas of one topic move while a producer writes, watched all the time."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from tests.broker.broker_world import Pending, batch_of
from tests.broker.cluster_world import VOTERS, ClusterWorld
from tests.broker.test_broker_in_a_cluster import fetch

from strandline.broker.groups.moving import Moving
from strandline.controller.commands import (
    AlterReassignments,
    BalancedReplicas,
    BalanceNoted,
    BalanceReplicas,
    CreateTopics,
    NewTopic,
    PartitionResults,
    TopicResults,
    WantedReplicas,
)
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import BrokerId, GroupId
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.raft.transitions import Role
from strandline.replication.host.removal import ReplicaRemoval
from strandline.replication.replica.replica import Replica
from strandline.simulation.world.scheduler import US_PER_MS

TOPIC = "moved"
BROKERS = (1, 2, 3, 4, 5)
OLD = (1, 2, 3)
PRODUCE_INTERVAL_MS = 20

Condition = Callable[["MovingWorld"], bool]

STAGES: dict[str, Condition] = {
    "target": lambda world: world.known.is_moving,
    "observer": lambda world: world.any_leader(lambda one: bool(one.configuration.observers)),
    "granted": lambda world: bool(world.known.pending),
    "joint": lambda world: world.any_leader(lambda one: one.configuration.is_joint),
    "final": lambda world: (
        bool(world.known.pending)
        and world.any_replica(
            lambda one: (
                one.configuration.version > world.known.version and not one.configuration.is_joint
            )
        )
    ),
    "stable": lambda world: world.known.version == 1,
}
"""What a move goes through, in order, and how to tell."""


class MovingWorld(ClusterWorld):
    """One topic of one partition on brokers 1 to 3, the controller's voters, and a producer."""

    def __init__(
        self,
        replicas: tuple[int, ...] = OLD,
        regions: Mapping[int, str] | None = None,
        configs: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(BROKERS, regions=regions)
        self.until_started()
        placed = ((0, tuple(map(BrokerId, replicas))),)
        configs = (("min.insync.replicas", str(min(2, len(replicas)))), *configs)
        answer = self.submit(
            CreateTopics((NewTopic(name=TOPIC, assignments=placed, configs=configs),))
        )
        assert isinstance(answer, TopicResults) and not answer.topics[0].error_code, answer
        self.until(lambda: bool(self.leader_of(TOPIC)))
        self.acked: list[bytes] = []
        self.offsets: dict[bytes, int] = {}
        self._waiting: dict[bytes, Pending] = {}
        self._sent = 0
        self.violations: list[str] = []
        self._produce()

    # ---- what is the case ------------------------------------------------------------------------

    @property
    def states(self) -> dict[int, Partition]:
        """The partition as each running broker knows it."""
        found = {}
        for one, host in self.hosts.items():
            topic = None
            if host.program is not None:
                topic = host.program.controller.cluster.topics.get(TOPIC)
            if topic is not None:
                found[one] = topic.partitions[0]
        return found

    @property
    def known(self) -> Partition:
        """The latest that any running broker knows."""

        def age(one: int) -> int:
            return self.broker(one).controller.cluster.version

        return self.states[max(self.states, key=age)]

    def any_replica(self, holds: Callable[[Replica], bool]) -> bool:
        """Whether it holds for any running replica."""
        return any(holds(one) for one in self.replicas_of(TOPIC).values())

    def any_leader(self, holds: Callable[[Replica], bool]) -> bool:
        """Whether it holds for any running leader."""
        return self.any_replica(lambda one: one.is_leader and holds(one))

    def controller_leader(self) -> int:
        """The broker that leads the controller's group."""
        for one in VOTERS:
            if self.hosts[one].program is not None and self.controller(one).is_serving:
                return one
        return 0

    def kill_one(self, victim: str, *, added: int, removed: int) -> None:
        """Have a broker lose its power for a while: "leader", "controller", "added", "removed"."""
        dead = {
            "leader": self.leader_of(TOPIC) or 2,
            "controller": self.controller_leader(),
            "added": added,
            "removed": removed,
        }[victim]
        self.lose_power_of(dead, for_ms=3_000)

    def is_settled(self, *replicas: int, observers: tuple[int, ...] = ()) -> bool:
        """Whether everybody who runs has let go, or has it all."""
        states = self.states
        leader = self.leader_of(TOPIC)
        held = self.replicas_of(TOPIC)
        wanted = Roles(_ids(replicas), _ids(observers))
        return (
            all(one.roles == wanted and not one.is_moving for one in states.values())
            and leader in replicas
            and set(held) == set(wanted.all) & set(states)
            and set(held[leader].configuration.observers) == set(observers)
            and not any(one.raft.has_lost_state for one in held.values())
            and all(one.log_end_offset == held[leader].log_end_offset for one in held.values())
            and all(
                any(name.startswith(f"{TOPIC}-0") for name in self.directories(one))
                == (one in wanted.all)
                for one in states
            )
        )

    # ---- what is done ----------------------------------------------------------------------------

    def move(self, *replicas: int) -> int:
        """Ask for other replicas; the error code."""
        return self._alter(tuple(map(BrokerId, replicas)))

    def balance(self, voters: tuple[int, ...], observers: tuple[int, ...]) -> None:
        """Ask for these voters and observers, as the balancer does, until it is taken down."""
        wanted = Roles(_ids(voters), _ids(observers))
        while self.known.wanted != wanted and self.known.roles != wanted:
            self.until(lambda: self._controller_known_at() != 0)
            at, one = self._controller_known_at(), self.known
            move = BalancedReplicas(
                group=one.group,
                seen_at=max(self.broker(b).controller.cluster.version for b in self.states),
                version=one.version,
                replicas=one.replicas,
                observers=one.observers,
                target_before=one.target,
                target_observers_before=one.target_observers,
                target=wanted.voters,
                target_observers=wanted.observers,
            )
            answer = self.submit(BalanceReplicas((move,)), at=at)
            if isinstance(answer, BalanceNoted) and answer.groups:
                return
            self.advance(101)

    def cancel(self) -> int:
        """Ask for no move."""
        return self._alter(None)

    def _alter(self, replicas: tuple[BrokerId, ...] | None) -> int:
        wanted = WantedReplicas(topic=TOPIC, index=0, replicas=replicas)
        self.until(lambda: self._controller_known_at() != 0)
        at = self._controller_known_at()
        answer = self.submit(AlterReassignments((wanted,)), at=at)
        assert isinstance(answer, PartitionResults), answer
        return answer.partitions[0].error_code

    def _controller_known_at(self) -> int:
        """A broker that leads the controller's group, and knows; 0 for none yet."""
        leader = self.controller_leader()
        return leader if leader and self.controller(leader).can_serve_reads else 0

    def reach(self, stage: str) -> None:
        """Let a move that was asked for get so far."""
        self.until(lambda: STAGES[stage](self))

    def finish(self, *replicas: int, observers: tuple[int, ...] = ()) -> None:
        """Let it come to an end; what was acknowledged is there."""
        self.until(lambda: self.is_settled(*replicas, observers=observers))
        before = len(self.acked)
        self.until(lambda: len(self.acked) > before)
        self.check()

    def check(self) -> None:
        """Every acknowledged value is there once, whoever is read."""
        assert self.violations == []
        values = fetch(self, TOPIC, at=self.leader_of(TOPIC))
        assert len(values) == len(set(values))
        missing = [value for value in self.acked if value not in set(values)]
        assert missing == []

    # ---- the producer, and what is watched -------------------------------------------------------

    def _produce(self) -> None:
        for value, pending in list(self._waiting.items()):
            if pending.is_answered:
                answer = pending.answer(ProduceResponse)
                result = answer.responses[0].partition_responses[0]
                if result.error_code == 0:
                    self.acked.append(value)
                    self.offsets[value] = result.base_offset
                del self._waiting[value]
        leader = self.leader_of(TOPIC)
        if leader and len(self._waiting) < 5:
            value = b"%d" % self._sent
            self._sent += 1
            now = self.broker(leader).services.clock.wall_ms()
            data = PartitionProduceData(records=batch_of(value, timestamp=now))
            topic = TopicProduceData(name=TOPIC, partition_data=[data])
            request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic])
            self._waiting[value] = self.send(leader, request, 9)
        self._watch()
        self.scheduler.after(PRODUCE_INTERVAL_MS * US_PER_MS, self._produce)

    def _watch(self) -> None:
        """Who leads goes by voters that the controller knows of; no observer stands."""
        for replica in self.replicas_of(TOPIC).values():
            known = self.known
            may_vote = {*known.replicas, *(one for voters in known.possible for one in voters)}
            is_observer = replica.self_id not in may_vote
            if is_observer and replica.raft.role in (Role.PRECANDIDATE, Role.CANDIDATE):
                self.violations.append(f"{replica.self_id} stands for election beside {known}")
            if replica.is_serving and replica.can_serve_reads:
                self.check_granted(replica)

    def check_granted(self, replica: Replica) -> None:
        """Note a configuration in force that nobody granted."""
        known, present = self.known, replica.configuration
        granted = dict(enumerate(known.possible, known.version))
        voters = granted.get(present.version, ())
        if present.version >= known.version and set(present.voters) != set(voters):
            self.violations.append(f"{present} where {known} was granted")

    def check_removal(self, broker: int, group: GroupId) -> None:
        """Note a removal by who may be needed: nobody knows voters without it to be committed."""
        replicas = [one for one in self.replicas_of(TOPIC).values() if one.group == group]
        counted = [one for one in replicas if broker in one.configuration.all_voters]
        if counted and not any(
            one not in counted and one.raft.configuration_index <= one.raft.commit
            for one in replicas
        ):
            self.violations.append(f"{broker} removes its log while it votes")


@contextmanager
def nothing_begun(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Meanwhile no leader begins what it is granted: it is not in step, or has not heard of it."""
    are_in_step = Moving._are_in_step

    def held(replica: Replica, partition: Partition, roles: Roles) -> bool:
        return not partition.pending and are_in_step(replica, partition, roles)

    with patch.context() as held_back:
        held_back.setattr(Moving, "_are_in_step", staticmethod(held))
        yield


def _ids(some: tuple[int, ...]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, some))


@contextmanager
def moving_world(
    monkeypatch: pytest.MonkeyPatch,
    replicas: tuple[int, ...] = OLD,
    regions: Mapping[int, str] | None = None,
    configs: tuple[tuple[str, str], ...] = (),
) -> Iterator[MovingWorld]:
    """The cluster; every removal of a log is looked at."""
    world = MovingWorld(replicas, regions, configs)
    remove = ReplicaRemoval.remove

    def watched(
        self: ReplicaRemoval,
        group: GroupId,
        directory: str,
        done: Callable[[], None],
        *,
        lost_in: int = 0,
    ) -> None:
        if not lost_in:
            host = self._close_group.__self__  # type: ignore[attr-defined]
            world.check_removal(host.self_id, group)
        remove(self, group, directory, done, lost_in=lost_in)

    monkeypatch.setattr(ReplicaRemoval, "remove", watched)
    yield world
    world.close()
