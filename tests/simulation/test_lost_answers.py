"""A broker does what it is asked, and is not heard: clients ask again, and nothing is done twice.

Source: Kafka's Java client (NetworkClient, Sender); KIP-98; docs/internals/simulation.md."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.simulation.mutants import MUTANTS, forget_what_was_answered
from tests.simulation.plain_scenario import plain_scenario, started

from strandline.model.ids import BrokerId, GroupId, Offset
from strandline.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from strandline.protocol.messages.delete_records import DeleteRecordsRequest
from strandline.protocol.messages.fetch import FetchRequest
from strandline.protocol.messages.find_coordinator import FindCoordinatorRequest
from strandline.protocol.messages.heartbeat import HeartbeatRequest
from strandline.protocol.messages.init_producer_id import InitProducerIdRequest
from strandline.protocol.messages.join_group import JoinGroupRequest
from strandline.protocol.messages.list_offsets import ListOffsetsRequest
from strandline.protocol.messages.metadata import MetadataRequest
from strandline.protocol.messages.offset_commit import OffsetCommitRequest
from strandline.protocol.messages.offset_fetch import OffsetFetchRequest
from strandline.protocol.messages.produce import ProduceRequest
from strandline.protocol.messages.sync_group import SyncGroupRequest
from strandline.protocol.table import Message
from strandline.simulation.clients.clients import Client
from strandline.simulation.clients.connections import GIVE_UP_MS
from strandline.simulation.clients.producers import REQUEST_TIMEOUT_MS, Producer
from strandline.simulation.faults.kinds import ANSWER_FAULTS, DRAWN_APART, FAULT_KINDS
from strandline.simulation.invariants.facts import Acknowledged, Produced
from strandline.simulation.scenarios.scenario import PlannedFault, ProducerPlan, Scenario
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.world import World

GROUP = GroupId(1)
SELDOM_MS, OFTEN_MS = 60_000, 10
FEW_SEEDS = range(1, 13)
# A drill closes connections of clients, too.
USUAL_FAULTS = tuple(kind for kind in FAULT_KINDS if kind not in (*DRAWN_APART, "region-drill"))
ALL_BYTES = 1_000_000
MEMBERS_MESSAGES = (
    FindCoordinatorRequest,
    JoinGroupRequest,
    SyncGroupRequest,
    OffsetFetchRequest,
    OffsetCommitRequest,
    HeartbeatRequest,
)
OTHER_MESSAGES = (
    MetadataRequest,
    InitProducerIdRequest,
    ProduceRequest,
    FetchRequest,
    ListOffsetsRequest,
)
ADMINS_MESSAGES = (AlterPartitionReassignmentsRequest, DeleteRecordsRequest)


class Watched:
    """A led group, a producer with acks=all, and what the checker is told of it."""

    def __init__(self, *, interval_ms: int, acks: int = -1) -> None:
        plan = ProducerPlan("p1.0", GROUP, acks, acks == -1, interval_ms, 20)
        self.world = started(plain_scenario(producers=(plan,)))
        self.producer: Producer = self.world.producers[0]
        (self.leader,) = self.world.cluster.leading_brokers()
        self.produced: list[Produced] = []
        self.acknowledged: list[Acknowledged] = []
        for name, seen in (("produced", self.produced), ("acknowledged", self.acknowledged)):
            self._watch(name, seen)

    def _watch(self, name: str, seen: list) -> None:  # type: ignore[type-arg]
        honest = getattr(self.world.checker, name)

        def tell(fact: object) -> None:
            seen.append(fact)
            honest(fact)

        setattr(self.world.checker, name, tell)

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 5_000) -> None:
        limit_us = self.world.scheduler.now_us + limit_ms * 1_000
        assert self.world.scheduler.run_until_true(condition, limit_us=limit_us)

    def log(self) -> list[bytes]:
        """The values in the leader's log."""
        replica = self.world.hosts[self.leader].program.replication.replicas[GROUP]  # type: ignore[union-attr]
        return [
            value
            for _, value in self.world.cluster.values.read(
                replica.read(Offset(0), ALL_BYTES).bytes()
            )
        ]

    def values(self) -> list[bytes]:
        """What was produced, once each, in its order."""
        return list(dict.fromkeys(value for fact in self.produced for value in fact.values))


def test_a_batch_whose_answer_is_lost_is_written_once_and_answered_as_before() -> None:
    watched = Watched(interval_ms=SELDOM_MS)
    world, producer = watched.world, watched.producer
    producer.connection_to(watched.leader).lose_answers()
    producer.start()
    begun_us = world.scheduler.now_us
    watched.run_until(lambda: bool(watched.acknowledged), limit_ms=500)
    world.cluster.advance(REQUEST_TIMEOUT_MS // 2)
    assert producer.acknowledged_count == 0 and len(watched.produced) == 1
    watched.run_until(lambda: producer.acknowledged_count > 0)
    assert world.scheduler.now_us - begun_us > REQUEST_TIMEOUT_MS * 1_000
    first, again = watched.acknowledged
    assert (first.base_offset, first.values) == (again.base_offset, again.values)
    assert [fact.attempt for fact in watched.produced] == [1, 2]
    assert watched.log() == watched.values()
    assert not world.cluster.is_over


def test_what_was_in_flight_with_it_fails_with_it_and_comes_again_in_order() -> None:
    watched = Watched(interval_ms=OFTEN_MS)
    producer = watched.producer
    producer.connection_to(watched.leader).lose_answers()
    producer.start()
    watched.run_until(lambda: len(watched.acknowledged) == 5)
    offsets = {one.values[0]: one.base_offset for one in watched.acknowledged}
    assert producer.acknowledged_count == 0
    watched.run_until(lambda: producer.acknowledged_count > 10)
    producer.stop()
    watched.run_until(lambda: producer.is_idle)
    again = [one for one in watched.acknowledged[5:] if one.values[0] in offsets]
    assert [one.values[0] for one in again] == list(offsets)
    assert [one.base_offset for one in again] == list(offsets.values())
    assert watched.log() == watched.values()


@pytest.mark.parametrize("drops_requests", [False, True])
def test_who_is_reset_asks_again_at_once(drops_requests: bool) -> None:
    watched = Watched(interval_ms=OFTEN_MS)
    producer, world = watched.producer, watched.world
    producer.start()
    watched.run_until(lambda: len(watched.produced) >= 3)
    before = len(watched.produced)
    old = producer.connection_to(watched.leader)
    assert old.open
    producer.reset(watched.leader, drops_requests=drops_requests)
    assert not old.open and producer.connection_to(watched.leader) is not old
    sent_before = {fact.values[0] for fact in watched.produced}
    world.cluster.advance(REQUEST_TIMEOUT_MS // 3)
    repeated = [fact for fact in watched.produced[before:] if fact.values[0] in sent_before]
    assert repeated and {fact.attempt for fact in repeated} == {2}
    assert [fact.values[0] for fact in repeated] == sorted(
        (fact.values[0] for fact in repeated), key=lambda value: int(value.split(b"/")[1])
    )
    producer.stop()
    watched.run_until(lambda: producer.is_idle)
    assert watched.log() == watched.values()


def test_what_is_not_acknowledged_is_not_asked_again_after_a_reset() -> None:
    watched = Watched(interval_ms=SELDOM_MS, acks=0)
    watched.producer.start()
    watched.producer.reset(watched.leader, drops_requests=True)
    watched.world.cluster.advance(2 * REQUEST_TIMEOUT_MS)
    assert len(watched.produced) == 1 and not watched.log()


def test_a_connection_is_given_up_by_who_has_no_time_out_of_its_own() -> None:
    world = started(plain_scenario())
    client = Client("client", world.cluster, world.cluster.rng)
    told: list[str] = []
    broker = BrokerId(1)
    connection = client.connection_to(broker)
    connection.lose_answers()
    for name in ("first", "second"):
        client.ask(
            broker,
            lambda _, exchange: exchange.answer(lambda: told.append("answered")),
            lambda: told.append("refused"),
            lost=lambda name=name: told.append(name),  # type: ignore[misc]
        )
    world.cluster.advance(GIVE_UP_MS - 100)
    assert told == [] and client.connection_to(broker) is connection
    world.cluster.advance(200)
    assert told == ["first", "second"] and client.connection_to(broker) is not connection
    client.ask(
        broker, lambda _, exchange: exchange.answer(lambda: told.append("answered")), lambda: None
    )
    world.cluster.advance(GIVE_UP_MS)
    assert told == ["first", "second", "answered"]


# ---- whole brokers -----------------------------------------------------------------------------


def brokers(**changes: object) -> Scenario:
    producers = (ProducerPlan("p1.0", GROUP, -1, True, 40, 20),)
    whole = plain_scenario(producers=producers).whole()
    changed = {"group_consumer_count": 0, "active_ms": 10_000, **changes}
    return replace(whole, consumer_count=1, **changed)  # type: ignore[arg-type]


@pytest.mark.simulation
@pytest.mark.parametrize("is_reset", [False, True], ids=["lost", "reset"])
@pytest.mark.parametrize(
    "kind", [*MEMBERS_MESSAGES, *OTHER_MESSAGES, *ADMINS_MESSAGES], ids=lambda kind: kind.__name__
)
def test_whatever_is_not_answered_is_asked_again(
    kind: type[Message], is_reset: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By every client of a whole broker; and what is promised holds."""
    changes: dict[str, object] = {}
    if kind in MEMBERS_MESSAGES:
        changes = {"group_consumer_count": 2, "active_ms": 12_000}
    elif kind in ADMINS_MESSAGES:
        changes = {"move_interval_ms": 1_500, "delete_interval_ms": 1_500}
    world = World(brokers(**changes))
    asked: list[Message] = []
    honest = BrokerMember.ask

    def ask(self: BrokerMember, request: Message, *told: object, **how: object) -> None:
        if isinstance(request, kind):
            asked.append(request)
        if isinstance(request, kind) and len(asked) == 1:
            for client in world.cluster.clients:
                if is_reset:
                    client.reset(self.broker, drops_requests=False)
                else:
                    client.connection_to(self.broker).lose_answers()
        honest(self, request, *told, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(BrokerMember, "ask", ask)
    assert world.run() is None
    assert len(asked) > 1
    if kind in ADMINS_MESSAGES:
        assert asked[0] in asked[1:]


def test_faults_strike_some_clients_and_end() -> None:
    faults = (
        PlannedFault(500, "lost-answers", 3_000, 1),
        PlannedFault(700, "client-reset", 50, 3),
    )
    producers = tuple(ProducerPlan(f"p1.{one}", GROUP, -1, True, 40, 20) for one in range(4))
    outcome = run_scenario(replace(plain_scenario(producers=producers), faults=faults))
    assert outcome.violation is None
    assert outcome.tally.fault_counts == {"lost-answers": 1, "client-reset": 1}
    lines = [line for line in outcome.trace if " is not heard by " in line or " are reset" in line]
    assert len(lines) == 2
    for line in lines:
        assert 0 < sum(one.name in line for one in producers) < len(producers)
    # The others were answered all the time, and these again, in the end.
    assert outcome.tally.acknowledged_count > 2 * 1_500 / 40


@pytest.mark.simulation
def test_where_answers_are_lost_it_is_seen_that_they_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By others only where the answer comes after a time-out and before what it leads to."""
    mutant = next(one for one in MUTANTS if one.plant is forget_what_was_answered)
    mutant.plant(monkeypatch)
    others = tuple(kind for kind in USUAL_FAULTS if not FAULT_KINDS[kind].loses_page_cache)

    def found_count(kinds: tuple[str, ...]) -> int:
        return sum(replace(mutant, faults=kinds).is_found_by(seed) for seed in FEW_SEEDS)

    assert found_count(others) <= len(FEW_SEEDS) / 6
    for kind in ANSWER_FAULTS:
        assert found_count((kind,)) > len(FEW_SEEDS) / 2


@pytest.mark.simulation
def test_no_producer_is_told_that_it_is_out_of_sequence() -> None:
    """Where nothing but answers and connections is lost, no leader loses count."""
    drawn = [Scenario.draw(seed) for seed in FEW_SEEDS]
    weights = dict.fromkeys(ANSWER_FAULTS, 1)
    for one in drawn:
        outcome = run_scenario(replace(one, fault_weights=weights, fault_interval_ms=200))
        assert outcome.violation is None
        assert sum(outcome.tally.fault_counts.values()) > 3
        assert not any("begins its epoch" in line for line in outcome.trace)
