"""Every API asks for the right that Kafka asks for, and one rule more or less changes its answer.

Why:    an API that forgets to ask is open to everyone.
How:    a table of requests, each with the rights that open it. Without rules a request is refused
        by the code of its kind of resource; with one of the rights it is not; with a denial beside
        it, it is again.
Source: Kafka 4.3's KafkaApis, ControllerApis and AuthorizerIntegrationTest; decision 0069."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import msgspec
import pytest
from tests.broker.access_table import (
    ALICE,
    NAMES,
    REFUSALS,
    ROWS,
    TOPIC,
    WITHOUT_REFUSAL,
    O,
    Right,
    Row,
    cluster,
    topic,
)
from tests.broker.broker_world import SELF, BrokerWorld, Pending, Sink

from strandline.broker.access.authorisation import Authorisation
from strandline.broker.access.requirements import OPEN
from strandline.broker.handler_table import HANDLERS
from strandline.config.access_section import AccessSection
from strandline.model.access import Kind, PatternType, Permission, Rule
from strandline.model.cluster import Loss
from strandline.protocol.apis import APIS
from strandline.protocol.errors import Error
from strandline.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.protocol.messages.describe_losses import DescribeLossesRequest
from strandline.protocol.messages.describe_observers import DescribeObserversRequest
from strandline.protocol.messages.describe_read_replicas import DescribeReadReplicasRequest
from strandline.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from strandline.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from strandline.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.protocol.table import Message
from strandline.security.session import Principal, Session


def test_the_table_has_every_api() -> None:
    offered = {APIS[key].name for key in HANDLERS}
    assert offered == {one.api for one in ROWS} | WITHOUT_REFUSAL | OPEN


def rule(right: Right, permission: Permission = Permission.ALLOW) -> Rule:
    name = NAMES[right.kind]
    return Rule(
        right.kind, PatternType.LITERAL, name, "User:alice", "*", right.operation, permission
    )


def enforce(world: BrokerWorld, *rules: Rule) -> None:
    section = AccessSection(enforce_rules=True, super_users=("User:admin",))
    services = world.services
    services.access = Authorisation(section, services.cluster, broker_id=services.broker_id)
    services.cluster.access.rules = dict.fromkeys(rules)
    services.cluster.access.version += 1


def codes_of(value: object) -> Iterator[int]:
    """Every error code in an answer."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name == "error_code":
                yield getattr(value, name)
            else:
                yield from codes_of(getattr(value, name))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from codes_of(one)


def send(world: BrokerWorld, request: Message, version: int, session: Session) -> Pending:
    sink = Sink()
    sink.session = session
    pending = world.send(request, version, sink=sink)
    world.advance(0)
    return pending


def answer_to(pending: Pending, request: Message) -> Message:
    api = next(one for one in APIS.values() if one.request is type(request))
    return pending.answer(api.response)


def ask(world: BrokerWorld, request: Message, version: int) -> Message:
    return answer_to(send(world, request, version, ALICE), request)


def refusals_in(world: BrokerWorld, one: Row, session: Session = ALICE) -> set[int]:
    """The refusals in the answer. This broker has no coordinator and no peers, so a request that
    is let in may wait, or fail for want of them."""
    pending = send(world, one.request, one.version, session)
    if not pending.context.is_answered:
        return set()
    found = set(codes_of(answer_to(pending, one.request)))
    return found & set(map(int, REFUSALS.values()))


@pytest.mark.parametrize("one", ROWS, ids=[f"{one.api}-{one.needed[0].kind.name}" for one in ROWS])
def test_a_request_needs_its_right(world: BrokerWorld, one: Row) -> None:
    world.add_topic(TOPIC)
    given = [rule(right) for right in one.given]
    right = [rule(right) for right in one.needed]
    denied = [rule(right, Permission.DENY) for right in one.needed]
    enforce(world, *given)
    assert refusals_in(world, one) == {one.refusal}
    assert refusals_in(world, one, replace(ALICE, principal=Principal.user("admin"))) == set()
    others = [msgspec.structs.replace(each, principal="User:bob") for each in right]
    enforce(world, *given, *others)
    assert refusals_in(world, one) == {one.refusal}
    enforce(world, *given, *right, *denied)
    assert refusals_in(world, one) == {one.refusal}
    enforce(world, *given, *right)
    assert refusals_in(world, one) == set()


def test_without_rules_in_force_all_is_open(world: BrokerWorld) -> None:
    world.add_topic(TOPIC)
    for one in ROWS:
        assert refusals_in(world, one) == set(), one.api


# ---- what may not be seen ------------------------------------------------------------------------


def test_a_forbidden_topic_and_one_that_is_not_there_look_alike(world: BrokerWorld) -> None:
    world.add_topic(TOPIC)
    enforce(world)
    answers = []
    for name in (TOPIC, "no-such-topic"):
        answer = ask(world, MetadataRequest([MetadataRequestTopic(name=name)]), 12)
        (one,) = answer.topics  # type: ignore[attr-defined]
        assert one.name == name
        one.name = ""
        answers.append(one)
    assert answers[0] == answers[1]
    assert answers[0].error_code == Error.TOPIC_AUTHORIZATION_FAILED


def test_all_topics_are_those_that_may_be_described(world: BrokerWorld) -> None:
    world.add_topic(TOPIC)
    world.add_topic("secret")
    enforce(world, rule(topic(O.READ)))
    everything = ask(world, MetadataRequest(None), 12)
    assert [one.name for one in everything.topics] == [TOPIC]  # type: ignore[attr-defined]
    page = ask(world, DescribeTopicPartitionsRequest(), 0)
    assert [one.name for one in page.topics] == [TOPIC]  # type: ignore[attr-defined]


@pytest.mark.parametrize("right", [topic(O.READ), cluster(O.DESCRIBE)])
def test_replicas_are_told_to_clients_that_may_describe_the_topic(
    world: BrokerWorld, right: Right
) -> None:
    for name in (TOPIC, "secret"):
        world.add_topic(name)
        known = world.cluster.topics[name]
        loss = Loss(
            grant=1, lost=(), survivors=(), ends=(), leader=SELF, committed=0, end=0, by="", at_ms=0
        )
        known.partitions[0] = replace(known.partitions[0], observers=(SELF,), losses=(loss,))
    enforce(world, rule(right))
    seen = [TOPIC] if right.kind is Kind.TOPIC else [TOPIC, "secret"]
    observed = ask(world, DescribeObserversRequest(), 0)
    assert [one.topic for one in observed.partitions] == seen  # type: ignore[attr-defined]
    lost = ask(world, DescribeLossesRequest(), 0)
    assert [one.topic for one in lost.losses] == seen  # type: ignore[attr-defined]
    enforce(world)
    assert not ask(world, DescribeObserversRequest([TOPIC]), 0).partitions  # type: ignore[attr-defined]
    assert not ask(world, DescribeReadReplicasRequest([TOPIC]), 0).partitions  # type: ignore[attr-defined]


def test_a_topic_by_its_id_is_refused_without_its_name(world: BrokerWorld) -> None:
    world.add_topic(TOPIC)
    identity = world.cluster.topics[TOPIC].id
    enforce(world)
    request = MetadataRequest([MetadataRequestTopic(topic_id=identity, name=None)])
    (one,) = ask(world, request, 12).topics  # type: ignore[attr-defined]
    assert (one.error_code, one.name) == (Error.TOPIC_AUTHORIZATION_FAILED, None)
    request2 = DeleteTopicsRequest([DeleteTopicState(None, identity)])
    (gone,) = ask(world, request2, 6).responses  # type: ignore[attr-defined]
    assert (gone.error_code, gone.name) == (Error.TOPIC_AUTHORIZATION_FAILED, None)
    assert not world.controller.commands


def test_a_request_is_split_into_what_is_allowed_and_what_is_not(world: BrokerWorld) -> None:
    world.add_topic(TOPIC)
    world.add_topic("secret")
    enforce(world, rule(topic(O.DESCRIBE)))
    request = ListOffsetsRequest(
        -1,
        0,
        [ListOffsetsTopic(name, [ListOffsetsPartition(0, -1, -1)]) for name in (TOPIC, "secret")],
    )
    answer = ask(world, request, 7)
    codes = [one.partitions[0].error_code for one in answer.topics]  # type: ignore[attr-defined]
    assert codes == [Error.NONE, Error.TOPIC_AUTHORIZATION_FAILED]


def test_clients_are_told_the_operations_that_they_may_do(world: BrokerWorld) -> None:
    world.add_topic(TOPIC)
    enforce(world, rule(topic(O.WRITE)), rule(cluster(O.DESCRIBE)))
    request = MetadataRequest(
        [MetadataRequestTopic(name=TOPIC)],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    answer = ask(world, request, 10)
    (one,) = answer.topics  # type: ignore[attr-defined]
    assert one.topic_authorized_operations == (1 << O.WRITE) | (1 << O.DESCRIBE)
    assert answer.cluster_authorized_operations == 1 << O.DESCRIBE  # type: ignore[attr-defined]


def test_an_id_that_is_not_known_here_is_not_deleted_elsewhere(world: BrokerWorld) -> None:
    """The controller may know the topic already; this broker cannot say who may delete it."""
    enforce(world)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=UUID(int=4711))])
    (one,) = ask(world, request, 6).responses  # type: ignore[attr-defined]
    assert one.error_code == Error.UNKNOWN_TOPIC_ID
    assert not world.controller.commands


def fetch_of(
    *, max_wait_ms: int = 0, min_bytes: int = 1, session_id: int = 0, epoch: int = -1
) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1_000_000,
        topics=[FetchTopic(topic=TOPIC, partitions=[partition])] if epoch < 1 else [],
        session_id=session_id,
        session_epoch=epoch,
    )


def test_a_fetch_that_waited_is_judged_by_the_rules_of_its_answer(world: BrokerWorld) -> None:
    (replica,) = world.add_topic(TOPIC)
    enforce(world, rule(topic(O.READ)))
    pending = send(world, fetch_of(max_wait_ms=10_000), 12, ALICE)
    assert not pending.context.is_answered
    services = world.services
    services.cluster.access.rules = {}
    services.cluster.access.version += 1
    replica.write(b"after")
    world.advance(0)
    (one,) = answer_to(pending, fetch_of()).responses  # type: ignore[attr-defined]
    assert one.partitions[0].error_code == Error.TOPIC_AUTHORIZATION_FAILED
    assert not one.partitions[0].records


def test_a_fetch_that_waited_is_judged_by_the_groups_of_its_answer(world: BrokerWorld) -> None:
    """The client logs in again on the same connection, by a token that names other groups."""
    (replica,) = world.add_topic(TOPIC)
    read = rule(topic(O.READ))
    enforce(world, msgspec.structs.replace(read, principal="Group:analysts"))
    analyst = replace(ALICE, groups=frozenset({"analysts", "others"}))
    sink = Sink()
    sink.session = analyst
    waiting = [world.send(fetch_of(max_wait_ms=10_000), 12, sink=sink)]
    world.advance(0)
    sink.session = replace(analyst, groups=frozenset({"others"}))
    waiting.append(world.send(fetch_of(max_wait_ms=10_000), 12, sink=sink))
    world.advance(0)
    replica.write(b"after")
    world.advance(0)
    for one in waiting:
        (found,) = answer_to(one, fetch_of()).responses  # type: ignore[attr-defined]
        assert found.partitions[0].error_code == Error.TOPIC_AUTHORIZATION_FAILED
        assert not found.partitions[0].records
    sink.session = analyst
    again = world.send(fetch_of(), 12, sink=sink)
    world.advance(0)
    (found,) = answer_to(again, fetch_of()).responses  # type: ignore[attr-defined]
    assert found.partitions[0].error_code == Error.NONE


def test_a_fetch_session_reads_by_the_groups_of_each_request(world: BrokerWorld) -> None:
    (replica,) = world.add_topic(TOPIC)
    read = rule(topic(O.READ))
    enforce(world, msgspec.structs.replace(read, principal="Group:analysts"))
    analyst = replace(ALICE, groups=frozenset({"analysts"}))
    opened = answer_to(send(world, fetch_of(epoch=0), 12, analyst), fetch_of())
    number: int = opened.session_id  # type: ignore[attr-defined]
    replica.write(b"after")
    later = fetch_of(session_id=number, epoch=1)
    (found,) = answer_to(send(world, later, 12, ALICE), later).responses  # type: ignore[attr-defined]
    assert found.partitions[0].error_code == Error.TOPIC_AUTHORIZATION_FAILED
    assert not found.partitions[0].records


def test_a_fetch_waits_no_longer_than_its_login_holds(world: BrokerWorld) -> None:
    """An error would tell the client that it has no right, and clients whose connection ends start
    anew; after an empty answer they log in again."""
    (replica,) = world.add_topic(TOPIC)
    ends_at_ms = world.services.clock.monotonic_ms() + 1_000
    pending = send(world, fetch_of(max_wait_ms=10_000), 12, replace(ALICE, ends_at_ms=ends_at_ms))
    world.advance(999)
    assert not pending.context.is_answered
    world.advance(1)
    replica.write(b"after")
    world.advance(0)
    (found,) = answer_to(pending, fetch_of()).responses  # type: ignore[attr-defined]
    assert found.partitions[0].error_code == Error.NONE
    assert not found.partitions[0].records
    assert not pending.sink.closed


def test_a_fetch_whose_login_is_over_gets_no_records(world: BrokerWorld) -> None:
    (replica,) = world.add_topic(TOPIC)
    ends_at_ms = world.services.clock.monotonic_ms() + 1_000
    waiting = fetch_of(max_wait_ms=10_000, min_bytes=1_000_000)
    pending = send(world, waiting, 12, replace(ALICE, ends_at_ms=ends_at_ms))
    replica.write(b"before")
    world.advance(999)
    assert not pending.context.is_answered
    world.advance(1)
    (found,) = answer_to(pending, fetch_of()).responses  # type: ignore[attr-defined]
    assert not found.partitions[0].records


def test_a_fetch_session_is_of_its_user(world: BrokerWorld) -> None:
    """Or a client that finds its id learns names of topics, and ends it."""
    world.add_topic(TOPIC)
    enforce(world, rule(topic(O.READ)))
    opened = ask(world, fetch_of(epoch=0), 12)
    number: int = opened.session_id  # type: ignore[attr-defined]
    assert number
    mallory = replace(ALICE, principal=Principal.user("mallory"))
    request = fetch_of(session_id=number, epoch=1)
    stolen = answer_to(send(world, request, 12, mallory), request)
    assert stolen.error_code == Error.FETCH_SESSION_ID_NOT_FOUND  # type: ignore[attr-defined]
    send(world, fetch_of(session_id=number, epoch=-1), 12, mallory)
    assert ask(world, request, 12).error_code == Error.NONE  # type: ignore[attr-defined]
