"""One split is fetched exactly, whatever happens to brokers meanwhile.

Source: KIP-392, KIP-516; decisions/0049."""

import pytest
from tests.client.fake_cluster import FakeCluster, fetch
from tests.spark.reading.scene import Scene

from strandline.client.errors import ClientError
from strandline.client.rights import MissingRightError
from strandline.protocol.errors import Error
from strandline.protocol.messages.fetch import FetchRequest, FetchResponse
from strandline.protocol.table import Message
from strandline.spark.decoding.decode import decode
from strandline.spark.reading.data_loss import DataLossError
from strandline.spark.reading.fetching import SplitFetcher, last_whole
from strandline.spark.reading.splits import Split


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.topic("orders", 3)
    scene.write("orders", 1, 100)
    return scene


def values(fetcher: SplitFetcher, split: Split) -> list[int]:
    """The records of the split, which hold their offsets."""
    found: list[int] = []
    for fetched in fetcher:
        decoded = decode(
            fetched.data,
            columns=("value", "offset"),
            topic=split.topic,
            partition=split.partition,
            first_offset=fetched.first_offset,
            end_offset=split.end,
        )
        assert decoded.next_offset == min(fetched.next_offset, split.end)
        rows = decoded.batch.to_pydict()
        assert [int(value) for value in rows["value"]] == rows["offset"]
        found += rows["offset"]
    return found


def test_a_split_is_read_from_its_first_offset_to_its_last(scene: Scene) -> None:
    split = scene.split("orders", 1, 10, 47)
    assert values(scene.fetcher(split), split) == list(range(10, 47))


def test_the_next_bytes_are_asked_for_before_the_answer_is_handed_over(scene: Scene) -> None:
    split = scene.split("orders", 1, 0, 100)
    seen = []
    for _ in scene.fetcher(split):
        seen.append(sum(name == "Fetch" for _, name in scene.cluster.asked))
    assert seen[:3] == [2, 3, 4]
    assert seen[-1] == len(seen)  # Nothing is asked for beyond the split.


@pytest.mark.parametrize(
    "fault",
    [
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.UNKNOWN_LEADER_EPOCH,
        Error.FENCED_LEADER_EPOCH,
        Error.OFFSET_NOT_AVAILABLE,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.KAFKA_STORAGE_ERROR,
        "drop",
        "die",
    ],
)
def test_errors_that_a_retry_mends_lose_and_repeat_nothing(scene: Scene, fault: str | int) -> None:
    scene.cluster.faults["Fetch"] = [fault, fault, 0, 0, fault]
    split = scene.split("orders", 1, 0, 100)
    assert values(scene.fetcher(split), split) == list(range(100))
    assert scene.cluster.faults["Fetch"] == []


def test_a_leader_that_dies_is_followed_by_the_next_one(scene: Scene) -> None:
    split = scene.split("orders", 1, 0, 100)
    fetcher, found = scene.fetcher(split), 0
    for number, fetched in enumerate(fetcher):
        assert fetched.first_offset == found
        found = fetched.next_offset
        if number == 2:
            scene.cluster.down.add(2)
            scene.transport.on_sleep = lambda now_ms: _lead(scene, 3)
    assert found == 100
    assert {broker for broker, name in scene.cluster.asked if name == "Fetch"} == {2, 3}


def _lead(scene: Scene, broker: int) -> None:
    scene.cluster.topics["orders"][1].leader = broker


def test_no_progress_is_an_error_with_its_reason_after_the_patience(scene: Scene) -> None:
    scene.cluster.down.add(2)
    split = scene.split("orders", 1, 0, 100)
    with pytest.raises(ClientError, match="no progress from offset 0 on in 5000 ms") as failed:
        values(scene.fetcher(split, stall_ms=5_000), split)
    assert "LEADER_NOT_AVAILABLE" in str(failed.value)
    assert 5_000 < scene.transport.now_ms < 40_000


def test_records_that_retention_removed_are_an_error_or_passed_over(scene: Scene) -> None:
    scene.cluster.topics["orders"][1].start = 30
    split = scene.split("orders", 1, 0, 60)
    with pytest.raises(DataLossError, match="orders-1: offsets 0 to 30 are gone"):
        values(scene.fetcher(split), split)
    assert values(scene.fetcher(split, fails=False), split) == list(range(30, 60))
    scene.cluster.topics["orders"][1].start = 80
    assert values(scene.fetcher(split, fails=False), split) == []


def test_a_log_that_ends_before_the_split_is_an_error_or_passed_over(scene: Scene) -> None:
    split = scene.split("orders", 1, 150, 160)
    with pytest.raises(DataLossError, match="orders-1 ends at offset 100, before 150"):
        values(scene.fetcher(split), split)
    assert values(scene.fetcher(split, fails=False), split) == []


def test_a_topic_made_anew_is_not_taken_for_the_old_one(scene: Scene) -> None:
    split = scene.split("orders", 1, 0, 60)
    scene.topic("orders", 3)
    scene.write("orders", 1, 200)
    with pytest.raises(DataLossError, match="topic orders was made anew: its id is "):
        values(scene.fetcher(split), split)
    assert values(scene.fetcher(split, fails=False), split) == []


def test_a_topic_that_is_deleted_is_an_error_or_passed_over(scene: Scene) -> None:
    split = scene.split("orders", 1, 0, 60)
    del scene.cluster.topics["orders"]
    with pytest.raises(DataLossError, match="topic orders: There is no such topic"):
        values(scene.fetcher(split), split)
    assert values(scene.fetcher(split, fails=False), split) == []


class Near:
    """A leader that sends clients of a rack to a replica, which serves up to `end` and fails with
    `fault`."""

    def __init__(self, scene: Scene, *, replica: int, end: int = 1_000, fault: int = 0) -> None:
        self.replica, self.end, self.fault = replica, end, fault
        self.served: list[tuple[int, str]] = []
        scene.cluster.extra["Fetch"] = self.handle

    def handle(self, cluster: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, FetchRequest)
        log = cluster.topics["orders"][1]
        leader, log.leader = log.leader, broker
        answer = fetch(cluster, broker, request)
        log.leader = leader
        assert isinstance(answer, FetchResponse)
        self.served.append((broker, request.rack_id))
        (part,) = answer.responses[0].partitions
        asked = request.topics[0].partitions[0].fetch_offset
        if broker == leader and request.rack_id == "region-3":
            part.preferred_read_replica = self.replica
            part.records = b""
        elif broker != leader and (self.fault or asked >= self.end):
            part.error_code = self.fault
            part.records = b""
        return answer


def test_the_replica_of_the_rack_is_read_and_the_leader_only_asked(scene: Scene) -> None:
    near = Near(scene, replica=3)
    split = scene.split("orders", 1, 0, 100)
    assert values(scene.fetcher(split, rack="region-3"), split) == list(range(100))
    assert [broker for broker, _ in near.served[:2]] == [2, 3]
    assert {broker for broker, _ in near.served[1:]} == {3}
    assert {rack for _, rack in near.served} == {"region-3"}


@pytest.mark.parametrize(
    "fault",
    [
        0,
        Error.OFFSET_OUT_OF_RANGE,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.TOPIC_AUTHORIZATION_FAILED,  # A rule for the leader's region only.
    ],
)
def test_a_replica_that_is_behind_or_gone_is_left_for_the_leader(
    scene: Scene, fault: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = Near(scene, replica=3, end=30, fault=fault)
    monkeypatch.setenv("STRANDLINE_CLIENT_RACK", "region-3")
    split = scene.split("orders", 1, 0, 100)
    found = scene.fetcher(split)
    # Once it left the replica it asks the leader without a rack: that would send it back.
    assert values(found, split) == list(range(100))
    assert near.served[-1] == (2, "")


def test_a_leader_that_refuses_by_a_rule_ends_the_split_with_the_right_that_is_missing(
    scene: Scene,
) -> None:
    scene.cluster.faults["Fetch"] = [0, Error.TOPIC_AUTHORIZATION_FAILED]
    split = scene.split("orders", 1, 0, 100)
    with pytest.raises(MissingRightError, match=r"^User:ANONYMOUS may not read topic orders; to "):
        values(scene.fetcher(split), split)


def test_the_last_whole_batch_says_where_to_go_on(scene: Scene) -> None:
    batches = b"".join(scene.cluster.topics["orders"][1].batches)
    assert last_whole(memoryview(batches)) == (len(batches), 100)
    assert last_whole(memoryview(batches[:-1]))[1] == 99
    assert last_whole(memoryview(batches[:60])) == (0, None)
    assert last_whole(memoryview(b"")) == (0, None)


def test_tasks_of_one_process_share_connections(scene: Scene) -> None:
    client = scene.client()
    for start in range(0, 100, 10):
        split = scene.split("orders", 1, start, start + 10)
        fetcher = SplitFetcher(client, split, scene.reach(), fail_on_data_loss=True)
        assert values(fetcher, split) == list(range(start, start + 10))
    assert sorted(scene.transport.connects) == [1, 2]  # One for metadata, and the leader.


def test_a_task_that_is_given_up_leaves_no_answer_to_the_next_one(scene: Scene) -> None:
    client = scene.client()
    split = scene.split("orders", 1, 0, 100)
    next(iter(SplitFetcher(client, split, scene.reach(), fail_on_data_loss=True)))
    again = SplitFetcher(client, split, scene.reach(), fail_on_data_loss=True)
    assert values(again, split) == list(range(100))


def test_a_client_over_its_quota_waits_as_told_and_loses_nothing(scene: Scene) -> None:
    told_ms, early, asked = 40_000, 0, 0
    until_ms = 0

    def throttle(cluster: FakeCluster, broker: int, request: Message) -> Message:
        nonlocal early, asked, until_ms
        early += scene.transport.now_ms < until_ms
        asked += 1
        answer = fetch(cluster, broker, request)
        assert isinstance(answer, FetchResponse)
        answer.throttle_time_ms = told_ms
        if asked % 2:  # Every other answer is without records.
            answer.responses = []
        until_ms = scene.transport.now_ms + told_ms
        return answer

    scene.cluster.extra["Fetch"] = throttle
    split = scene.split("orders", 1, 0, 100)
    fetcher = scene.fetcher(split, stall_ms=10_000, fetch_bytes=200)
    assert values(fetcher, split) == list(range(100))
    assert early == 0
    assert asked > 2
