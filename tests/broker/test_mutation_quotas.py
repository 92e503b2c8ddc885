"""Changes of topics have a quota: what counts, which versions are refused, what is told.

Source: KIP-599; Kafka 4.3's StrictControllerMutationQuota and PermissiveControllerMutationQuota."""

import pytest
from tests.broker.broker_world import BrokerWorld, Pending, Sink

from strandline.broker.quotas.mutations import EXCEEDED
from strandline.controller.commands import (
    Command,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    TopicResult,
    TopicResults,
)
from strandline.protocol.errors import Error
from strandline.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from strandline.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.protocol.table import Message
from strandline.security.quotas.keys import CONTROLLER_MUTATION_RATE

OLD_CREATE, CREATE = 5, 7
SERVED, THROTTLED = int(Error.NONE), int(Error.THROTTLING_QUOTA_EXCEEDED)


class Asked:
    """A controller that does what it is asked, and what it was asked."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def obtain(self, command: Command, _: object) -> TopicResults:
        assert isinstance(command, (CreateTopics, CreatePartitions, DeleteTopics))
        names = [getattr(one, "topic", None) or getattr(one, "name", "") for one in command.topics]
        self.names += names
        return TopicResults(tuple(TopicResult(name=name) for name in names))


@pytest.fixture
def asked(world: BrokerWorld, monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()

    async def no_wait(*_: object, **__: object) -> None: ...

    monkeypatch.setattr(
        "strandline.broker.context.Services.obtain", lambda _, *args: asked.obtain(*args)
    )
    monkeypatch.setattr("strandline.broker.coordinators.applied_waiters.wait_for_leaders", no_wait)
    access = world.cluster.access
    access.quotas[(("client-id", "tester"),)] = {CONTROLLER_MUTATION_RATE: 1.0}
    access.version += 1
    return asked


def sent(world: BrokerWorld, request: Message, version: int) -> Pending:
    pending = world.send(request, version, sink=Sink())
    world.advance(0)
    return pending


def create(
    world: BrokerWorld, *partitions: int, version: int = CREATE, validates: bool = False
) -> tuple[list[int], int, list[int]]:
    """What comes of topics with so many partitions, the throttle time, what was muted."""
    topics = [
        CreatableTopic(name=f"n{at}-{count}", num_partitions=count, replication_factor=1)
        for at, count in enumerate(partitions)
    ]
    pending = sent(world, CreateTopicsRequest(topics=topics, validate_only=validates), version)
    answer = pending.answer(CreateTopicsResponse)
    codes = {one.name: one.error_code for one in answer.topics}
    told = [codes[one.name] for one in topics]
    return told, answer.throttle_time_ms, pending.sink.muted_ms


def test_a_client_in_debt_is_refused_topic_by_topic_and_muted(
    world: BrokerWorld, asked: Asked
) -> None:
    codes, throttle_ms, muted_ms = create(world, 10, 41, 1)
    assert codes == [SERVED, SERVED, THROTTLED]  # 11 tokens, and a debt of 40.
    assert throttle_ms == 40_000
    assert muted_ms == [40_000]
    assert asked.names == ["n0-10", "n1-41"]
    quotas = world.services.quotas
    assert quotas.throttled_count["mutation"] == 1


def test_an_old_client_is_served_and_muted(world: BrokerWorld, asked: Asked) -> None:
    codes, throttle_ms, muted_ms = create(world, 31, 5, version=OLD_CREATE)
    assert codes == [SERVED, SERVED]
    assert throttle_ms == max(muted_ms) == 25_000


def test_the_error_says_what_it_is(world: BrokerWorld, asked: Asked) -> None:
    create(world, 50)
    request = CreateTopicsRequest(topics=[CreatableTopic(name="u", num_partitions=1)])
    (one,) = sent(world, request, CREATE).answer(CreateTopicsResponse).topics
    assert (one.error_code, one.error_message) == (THROTTLED, EXCEEDED)


def test_what_is_only_validated_and_what_exists_takes_no_tokens(
    world: BrokerWorld, asked: Asked
) -> None:
    world.add_topic("t")
    assert create(world, 500, validates=True)[0] == [SERVED]
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=500)])
    sent(world, request, CREATE).answer(CreateTopicsResponse)
    assert create(world, 12)[:2] == ([SERVED], 0)
    assert create(world, 1)[0] == [THROTTLED]


@pytest.mark.parametrize("version", [OLD_CREATE, CREATE])
def test_what_the_controller_refuses_in_any_case_leaves_no_debt(
    world: BrokerWorld, asked: Asked, version: int
) -> None:
    """Or one client could lock out all that share its quota, for years."""
    assert create(world, 2**31 - 1, version=version)[:2] == ([SERVED], 0)
    told, throttle_ms, _ = create(world, *[1_000] * 500, version=OLD_CREATE)
    assert (set(told), throttle_ms) == ({SERVED}, 60_000)
    world.advance(10_000_000)
    assert create(world, 1)[:2] == ([SERVED], 0)


def test_a_topic_that_is_named_often_counts_once(world: BrokerWorld, asked: Asked) -> None:
    world.add_topic("a", partitions=11)
    pending = sent(world, DeleteTopicsRequest(topic_names=["a"] * 100), 4)
    assert pending.answer(DeleteTopicsResponse).throttle_time_ms == 0
    world.add_topic("b", partitions=1)
    repeated = [CreatePartitionsTopic("b", 10_000, None)] * 100
    pending = sent(world, CreatePartitionsRequest(topics=repeated), 2)
    assert pending.answer(CreatePartitionsResponse).throttle_time_ms == 60_000
    world.advance(10_000_000)
    assert create(world, 1)[:2] == ([SERVED], 0)


def test_deleted_topics_count_their_partitions(world: BrokerWorld, asked: Asked) -> None:
    for name in ("a", "b"):
        world.add_topic(name, partitions=8)
    create(world, 5)  # 6 tokens are left.
    states = [DeleteTopicState(name=name) for name in ("absent", "a", "b")]
    pending = sent(world, DeleteTopicsRequest(topics=states), 6)
    answer = pending.answer(DeleteTopicsResponse)
    codes = {one.name: one.error_code for one in answer.responses}
    assert codes == {"absent": SERVED, "a": SERVED, "b": THROTTLED}
    assert answer.throttle_time_ms == 2_000
    old = sent(world, DeleteTopicsRequest(topic_names=["b"]), 4).answer(DeleteTopicsResponse)
    assert old.responses[0].error_code == SERVED
    assert old.throttle_time_ms == 10_000


def test_more_partitions_count_as_many_as_are_new(world: BrokerWorld, asked: Asked) -> None:
    world.add_topic("a", partitions=8)

    def extend(count: int, version: int) -> int:
        topics = [CreatePartitionsTopic(name="a", count=count, assignments=None)]
        pending = sent(world, CreatePartitionsRequest(topics=topics), version)
        return pending.answer(CreatePartitionsResponse).results[0].error_code

    assert extend(8 + 12, 3) == SERVED
    assert extend(8 + 1, 3) == THROTTLED
    assert extend(8 + 1, 2) == SERVED


def test_topics_that_make_themselves_count(world: BrokerWorld, asked: Asked) -> None:
    world.cluster.cluster_configs["auto.create.topics.enable"] = "true"
    create(world, 50)
    asked.names.clear()
    pending = sent(world, MetadataRequest(topics=[MetadataRequestTopic(name="new")]), 9)
    answer = pending.answer(MetadataResponse)
    assert [one.error_code for one in answer.topics] == [Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert answer.throttle_time_ms > 0
    assert asked.names == []
