"""Fetch sessions: a consumer names, and gets, only what is new. Source: KIP-227, KIP-516."""

from uuid import UUID

import pytest
from tests.broker.broker_world import OTHER, BrokerWorld, Pending

from strandline.base.errors import ProtocolError
from strandline.broker.fetch import sessions as limits
from strandline.protocol.errors import Error
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

VERSION = 12
EVERYTHING = 10_000_000
MINUTE_MS = 60_000


class Client:
    """A consumer with one session; `epoch` is that of its next request."""

    def __init__(self, world: BrokerWorld, version: int = VERSION) -> None:
        self.world = world
        self.version = version
        self.id = 0
        self.epoch = 0

    def send(
        self,
        *wanted: tuple[str, int, int],
        forget: tuple[tuple[str, int], ...] = (),
        max_wait_ms: int = 0,
        rack: str = "",
    ) -> Pending:
        """Read (topic, partition, offset) from now on."""
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=EVERYTHING,
            session_id=self.id,
            session_epoch=self.epoch,
            topics=[
                FetchTopic(
                    name,
                    self.topic_id(name),
                    [
                        FetchPartition(
                            partition=index, fetch_offset=offset, partition_max_bytes=EVERYTHING
                        )
                    ],
                )
                for name, index, offset in wanted
            ],
            forgotten_topics_data=[
                ForgottenTopic(name, self.topic_id(name), [index]) for name, index in forget
            ],
            rack_id=rack,
        )
        return self.world.send(request, self.version)

    def topic_id(self, name: str) -> UUID:
        topic = self.world.cluster.topics.get(name)
        return UUID(int=99) if topic is None else topic.id

    def ask(
        self,
        *wanted: tuple[str, int, int],
        forget: tuple[tuple[str, int], ...] = (),
        rack: str = "",
    ) -> dict[tuple[str, int], PartitionData]:
        """The answer to `send`; it must not be an error."""
        return self.take(self.send(*wanted, forget=forget, rack=rack))

    def take(self, pending: Pending) -> dict[tuple[str, int], PartitionData]:
        """{(topic, partition): what the answer tells}; the session has gone on."""
        answer = pending.answer(FetchResponse)
        assert answer.error_code == 0, answer
        self.id, self.epoch = answer.session_id, self.epoch + 1
        names = {one.id: name for name, one in self.world.cluster.topics.items()}
        return {
            (topic.topic or names.get(topic.topic_id, "gone"), one.partition_index): one
            for topic in answer.responses
            for one in topic.partitions
        }

    def error(self, *wanted: tuple[str, int, int]) -> int:
        """The error of a request."""
        answer = self.send(*wanted).answer(FetchResponse)
        assert (answer.responses, answer.session_id) == ([], 0)
        return answer.error_code


VERSIONS = (7, 11, 12, 13, 18)


@pytest.mark.parametrize("version", VERSIONS)
def test_only_news_is_told(world: BrokerWorld, version: int) -> None:
    first, second = world.add_topic("t", 2)
    client = Client(world, version)
    assert set(client.ask(("t", 0, 0), ("t", 1, 0))) == {("t", 0), ("t", 1)}
    assert client.id > 0
    opened = client.id
    assert client.ask() == {}
    second.write(b"a")
    told = client.ask()
    assert (client.id, set(told)) == (opened, {("t", 1)})
    assert told["t", 1].high_watermark == 1
    assert set(client.ask()) == {("t", 1)}  # Its records were not read on from.
    assert client.ask(("t", 1, 1)) == {}
    first.write(b"b")
    assert set(client.ask()) == {("t", 0)}


def test_a_partition_that_is_named_twice_is_answered_once(world: BrokerWorld) -> None:
    world.add_topic("t", 4)
    answer = Client(world).send(("t", 0, 0), ("t", 0, 0)).answer(FetchResponse)
    (topic,) = answer.responses
    assert [one.partition_index for one in topic.partitions] == [0]


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_come_and_go(world: BrokerWorld, version: int) -> None:
    replicas = world.add_topic("t", 3)
    (other,) = world.add_topic("u")
    client = Client(world, version)
    client.ask(("t", 0, 0))
    assert set(client.ask(("t", 1, 0), ("u", 0, 0))) == {("t", 1), ("u", 0)}
    for replica in (*replicas, other):
        replica.write(b"a")
    assert set(client.ask(forget=(("t", 0), ("t", 2), ("none", 0)))) == {("t", 1), ("u", 0)}
    assert set(client.ask(("t", 0, 0), forget=(("u", 0),))) == {("t", 0), ("t", 1)}
    assert world.services.fetch_sessions.partition_count == 2


def test_a_new_mark_without_records_is_news(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    for value in (b"a", b"b"):
        replica.write(value)
    replica.high_watermark = type(replica.high_watermark)(1)
    client = Client(world)
    client.ask(("t", 0, 2))
    assert client.ask() == {}
    replica.high_watermark = type(replica.high_watermark)(2)
    told = client.ask()
    assert (told["t", 0].high_watermark, told["t", 0].records) == (2, b"")


def test_an_error_is_told_each_time_and_its_end_too(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    client = Client(world)
    client.ask(("t", 0, 0))
    replica.can_serve_reads = False
    for _ in range(2):
        assert client.ask()["t", 0].error_code == Error.NOT_LEADER_OR_FOLLOWER
    replica.can_serve_reads = True
    assert client.ask()["t", 0].error_code == 0
    assert client.ask() == {}


def test_a_nearer_replica_is_news(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.may_count = lambda broker: True  # type: ignore[attr-defined]
    client = Client(world)
    client.ask(("t", 0, 0))
    told = client.ask(rack="west")
    assert told["t", 0].preferred_read_replica == OTHER
    assert client.ask() == {}


def test_a_long_poll_in_a_session_ends_with_the_first_record(world: BrokerWorld) -> None:
    _, second = world.add_topic("t", 2)
    client = Client(world)
    client.ask(("t", 0, 0), ("t", 1, 0))
    pending = client.send(max_wait_ms=500)
    world.advance(300)
    assert not pending.is_answered
    world.run(lambda: second.write(b"now"))
    assert set(client.take(pending)) == {("t", 1)}
    pending = client.send(("t", 1, 1), max_wait_ms=500)
    world.advance(499)
    assert not pending.is_answered
    world.advance(1)
    assert client.take(pending) == {}


@pytest.mark.parametrize(("session", "epoch"), [(5, 1), (5, 2**31 - 1), (-7, 3), (0, 1)])
def test_a_session_that_is_not_there_is_not_found(
    world: BrokerWorld, session: int, epoch: int
) -> None:
    world.add_topic("t")
    client = Client(world)
    client.id, client.epoch = session, epoch
    assert client.error(("t", 0, 0)) == Error.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [2, 4, -2, 2**31 - 1])
def test_a_request_out_of_turn_is_refused_and_the_session_goes_on(
    world: BrokerWorld, epoch: int
) -> None:
    (replica,) = world.add_topic("t")
    client = Client(world)
    client.ask(("t", 0, 0))
    client.ask()
    client.ask()
    assert client.epoch == 3
    client.epoch = epoch
    assert client.error() == Error.INVALID_FETCH_SESSION_EPOCH
    client.epoch = 3
    replica.write(b"a")
    assert set(client.ask()) == {("t", 0)}


def test_a_session_has_one_request_that_waits(world: BrokerWorld) -> None:
    """Each would keep all partitions of the session in memory, for a request of a few bytes."""
    (replica,) = world.add_topic("t")
    client = Client(world)
    client.ask(("t", 0, 0))
    waiting = []
    for _ in range(4):
        waiting.append(client.send(max_wait_ms=60_000))
        client.epoch += 1
        assert [one.is_answered for one in waiting] == [True] * (len(waiting) - 1) + [False]
    codes = [one.answer(FetchResponse).error_code for one in waiting[:-1]]
    assert codes == [Error.INVALID_FETCH_SESSION_EPOCH] * 3
    world.run(lambda: replica.write(b"a"))
    assert waiting[-1].answer(FetchResponse).responses
    client.epoch -= 1
    assert client.error() == Error.INVALID_FETCH_SESSION_EPOCH


def test_a_request_that_was_overtaken_while_it_waited_is_refused(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    client = Client(world)
    client.ask(("t", 0, 0))
    late = client.send(max_wait_ms=500)
    client.epoch += 1
    assert client.ask() == {}
    world.run(lambda: replica.write(b"a"))
    assert late.answer(FetchResponse).error_code == Error.INVALID_FETCH_SESSION_EPOCH
    assert set(client.ask()) == {("t", 0)}


def test_the_epoch_wraps_past_zero(world: BrokerWorld) -> None:
    world.add_topic("t")
    client = Client(world)
    client.ask(("t", 0, 0))
    session = world.services.fetch_sessions.find(client.id)
    assert session is not None
    client.epoch = session.epoch = 2**31 - 1
    assert client.ask() == {}
    assert session.epoch == 1


@pytest.mark.parametrize(("first", "then"), [(12, 13), (13, 12)])
def test_a_session_keeps_to_names_or_to_ids(world: BrokerWorld, first: int, then: int) -> None:
    world.add_topic("t")
    client = Client(world, first)
    client.ask(("t", 0, 0))
    client.version = then
    assert client.error() == Error.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_topic_that_was_made_again_has_another_id(world: BrokerWorld) -> None:
    world.add_topic("t")
    client = Client(world, 13)
    client.ask(("t", 0, 0))
    old = world.cluster.topics.pop("t")
    del world.cluster.topic_names[old.id]
    assert client.ask()["gone", 0].error_code == Error.UNKNOWN_TOPIC_ID
    old.id = UUID(int=7)
    world.cluster.topics["t"], world.cluster.topic_names[old.id] = old, "t"
    assert client.ask()["gone", 0].error_code == Error.INCONSISTENT_TOPIC_ID
    told = client.ask(("t", 0, 0))
    assert told["t", 0].error_code == 0


def test_a_full_request_ends_the_session_that_it_names(world: BrokerWorld) -> None:
    world.add_topic("t")
    client = Client(world)
    client.ask(("t", 0, 0))
    old, client.epoch = client.id, 0
    assert set(client.ask(("t", 0, 0))) == {("t", 0)}
    assert client.id not in (0, old)
    client.epoch = -1
    assert set(client.ask(("t", 0, 0))) == {("t", 0)}
    assert client.id == 0
    assert len(world.services.fetch_sessions) == 0


def test_a_session_without_partitions_is_closed(world: BrokerWorld) -> None:
    world.add_topic("t")
    client = Client(world)
    client.ask(("t", 0, 0))
    assert client.ask(forget=(("t", 0),)) == {}
    assert client.id == 0
    sessions = world.services.fetch_sessions
    assert (len(sessions), sessions.partition_count) == (0, 0)
    client.epoch = 0
    assert client.ask() == {}
    assert (client.id, len(sessions)) == (0, 0)


# ---- room --------------------------------------------------------------------------------------


@pytest.fixture
def two_slots(world: BrokerWorld) -> BrokerWorld:
    """Room for two sessions, and a topic of four partitions."""
    world.add_topic("t", 4)
    world.services.fetch_sessions._count_max = 2
    return world


def opened(world: BrokerWorld, count: int) -> Client:
    """A client that reads so many partitions, and has a session if there is room."""
    client = Client(world)
    told = client.ask(*(("t", index, 0) for index in range(count)))
    assert len(told) == count
    return client


def test_without_room_a_client_reads_without_a_session(two_slots: BrokerWorld) -> None:
    clients = [opened(two_slots, 1) for _ in range(3)]
    assert [client.id > 0 for client in clients] == [True, True, False]
    assert len(two_slots.services.fetch_sessions) == 2


def test_a_session_that_is_not_used_gives_its_place_up(two_slots: BrokerWorld) -> None:
    idle, used = opened(two_slots, 4), opened(two_slots, 1)
    two_slots.advance(2 * MINUTE_MS)
    used.ask()
    assert opened(two_slots, 1).id == 0
    two_slots.advance(1)
    assert opened(two_slots, 1).id > 0
    assert idle.error() == Error.FETCH_SESSION_ID_NOT_FOUND
    assert used.ask() == {}
    assert two_slots.services.fetch_sessions.evicted_count == 1


def test_an_old_session_gives_its_place_to_one_of_its_size_or_a_larger_one(
    two_slots: BrokerWorld,
) -> None:
    clients = [opened(two_slots, 2), opened(two_slots, 3)]
    for _ in range(3):
        two_slots.advance(MINUTE_MS)
        for client in clients:
            client.ask()
    assert opened(two_slots, 1).id == 0
    clients[0].ask(("t", 3, 0))  # Three partitions now.
    assert opened(two_slots, 2).id == 0
    newcomer = opened(two_slots, 3)
    assert newcomer.id > 0
    lost = [two_slots.services.fetch_sessions.find(client.id) is None for client in clients]
    assert sorted(lost) == [False, True]
    assert opened(two_slots, 2).id == 0  # The newcomer is young, and the other one is larger.


def test_no_session_takes_more_than_its_share_of_memory(
    world: BrokerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SESSION_PARTITIONS_MAX", 3)
    monkeypatch.setattr(limits, "PARTITIONS_MAX", 5)
    world.add_topic("t", 4)
    assert opened(world, 4).id == 0
    first, second = opened(world, 3), opened(world, 2)
    assert first.id > 0 and second.id > 0
    assert opened(world, 1).id == 0
    assert first.error(("t", 3, 0)) == Error.FETCH_SESSION_ID_NOT_FOUND
    assert second.ask(("t", 3, 0)).keys() == {("t", 3)}
    assert world.services.fetch_sessions.partition_count == 3


def test_many_sessions_leave_nothing_behind(world: BrokerWorld) -> None:
    world.add_topic("t", 4)
    sessions = world.services.fetch_sessions
    sessions._count_max = 8
    clients = [opened(world, 1 + number % 4) for number in range(8)]
    for turn in range(60):
        world.advance(MINUTE_MS)
        for client in clients:
            index = turn % 4
            if sessions.find(client.id) is not None:
                client.ask(("t", index, 0), forget=(("t", (index + 1) % 4),))
        opened(world, 4)
    assert len(sessions) == 8
    assert len(sessions._old) <= 2 * 8 + 16
    assert sessions.partition_count == sum(
        one.partition_count for one in sessions._sessions.values()
    )


def test_a_request_that_forgets_too_much_closes_the_connection(world: BrokerWorld) -> None:
    world.add_topic("t")
    client = Client(world)
    client.ask(("t", 0, 0))
    request = FetchRequest(
        session_id=client.id,
        session_epoch=1,
        forgotten_topics_data=[ForgottenTopic("t", partitions=list(range(100_000)))],
    )
    with pytest.raises(ProtocolError):
        world.send(request, VERSION)
    assert client.ask() == {}
