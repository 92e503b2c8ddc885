"""Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from differential.cases.produce import NOW_MS, raw_batch
from differential.cases.registry import case, create, fetch_request, produce_request
from differential.peer import Peer
from strandline.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from strandline.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from strandline.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from strandline.records.record import Record, encode_record

BATCHES = 3
STEP_MS = 1000


def _fill(peer: Peer, topic: str, **header: int) -> None:
    """Three batches of two records each, a second apart."""
    create(peer, topic)
    for place in range(BATCHES):
        base = NOW_MS - 60_000 + 2 * place * STEP_MS
        records = [Record(offset_delta=delta, key=b"k", value=b"v") for delta in range(2)]
        body = b"".join(encode_record(one, one.offset_delta * STEP_MS) for one in records)
        fields = {"base_timestamp": base, "max_timestamp": base + STEP_MS, **header}
        peer.ask_silently(produce_request(topic, raw_batch(body, 2, **fields)), 8)


@case
def fetch(peer: Peer) -> None:
    """In each version by name; odd offsets, partitions and topics."""
    _fill(peer, "fetch")
    for version in range(4, 13):
        for label, offset in (("start", 0), ("inside a batch", 3), ("end", 6)):
            peer.ask(f"v{version} {label}", fetch_request("fetch", offset), version)
    for label, topic, offset, partition in (
        ("beyond", "fetch", 7, 0),
        ("negative", "fetch", -1, 0),
        ("missing partition", "fetch", 0, 5),
        ("missing topic", "fetch-missing", 0, 0),
        ("empty topic", "", 0, 0),
    ):
        peer.ask(label, fetch_request(topic, offset, partition=partition), 11)


@case
def fetch_with_an_epoch(peer: Peer) -> None:
    """An epoch that the client knows and the broker does not."""
    _fill(peer, "fetch-epoch")
    for label, epoch in (("unknown", 99), ("not said", -1)):
        partition = FetchPartition(
            partition=0, fetch_offset=0, current_leader_epoch=epoch, partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_bytes=1 << 20, topics=[FetchTopic(topic="fetch-epoch", partitions=[partition])]
        )
        peer.ask(label, request, 11)


@case
def fetch_few_bytes(peer: Peer) -> None:
    """A limit below a batch still gives the first one."""
    _fill(peer, "fetch-few")
    for label, partition_bytes, whole_bytes in (
        ("one byte", 1, 1 << 20),
        ("one byte in all", 1 << 20, 1),
        ("none", 0, 0),
        ("a batch and a byte", 90, 1 << 20),
    ):
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=partition_bytes)
        request = FetchRequest(
            max_bytes=whole_bytes, topics=[FetchTopic(topic="fetch-few", partitions=[partition])]
        )
        peer.ask(label, request, 11)


@case
def fetch_sessions(peer: Peer) -> None:
    """Sessions that are none, and an epoch out of turn."""
    _fill(peer, "fetch-sessions")
    for label, session, epoch in (
        ("no session", 0, -1),
        ("unknown session", 12345, 1),
        ("close an unknown one", 12345, -1),
        ("an epoch without a session", 0, 5),
    ):
        request = fetch_request("fetch-sessions", 0)
        request.session_id, request.session_epoch = session, epoch
        peer.ask(label, request, 11)


def _list(topic: str, timestamp: int, partition: int = 0) -> ListOffsetsRequest:
    one = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[one])], timeout_ms=5000
    )


def _times(peer: Peer, topic: str) -> None:
    for label, timestamp in (
        ("latest", -1),
        ("earliest", -2),
        ("newest", -3),
        ("before all", NOW_MS - 70_000),
        ("the first", NOW_MS - 60_000),
        ("between two", NOW_MS - 58_500),
        ("the last", NOW_MS - 60_000 + 5 * STEP_MS),
        ("after all", NOW_MS),
        ("zero", 0),
    ):
        peer.ask(label, _list(topic, timestamp), 7)


@case
def offsets_by_time(peer: Peer) -> None:
    """Look-ups by time, and the places that have a name."""
    _fill(peer, "times")
    _times(peer, "times")
    for version in range(1, 12):
        peer.ask(f"v{version} latest", _list("times", -1), version)
    peer.ask("earliest local", _list("times", -4), 8)
    peer.ask("last in the tier", _list("times", -5), 9)
    peer.ask("earliest pending", _list("times", -6), 11)
    peer.ask("no such place", _list("times", -9), 11)
    peer.ask("missing partition", _list("times", -1, 7), 7)
    peer.ask("missing topic", _list("times-missing", -1), 7)


@case
def offsets_by_time_without_a_header(peer: Peer) -> None:
    """The headers leave maxTimestamp unset; the records have their times."""
    _fill(peer, "times-unset", max_timestamp=-1)
    _times(peer, "times-unset")
    peer.ask("read back", fetch_request("times-unset", 0), 11)


@case
def offsets_of_an_empty_topic(peer: Peer) -> None:
    """Nothing was ever written."""
    create(peer, "times-empty")
    _times(peer, "times-empty")


@case
def end_of_an_epoch(peer: Peer) -> None:
    """Where an epoch ended; epochs that never were."""
    _fill(peer, "epochs")
    for label, topic, epoch, partition in (
        ("not yet", "epochs", 1000, 0),
        ("negative", "epochs", -1, 0),
        ("missing partition", "epochs", 0, 5),
        ("missing topic", "epochs-missing", 0, 0),
    ):
        one = OffsetForLeaderPartition(partition=partition, leader_epoch=epoch)
        topics = [OffsetForLeaderTopic(topic=topic, partitions=[one])]
        for version in range(2, 5):
            peer.ask(f"v{version} {label}", OffsetForLeaderEpochRequest(-1, topics), version)


@case
def delete_records(peer: Peer) -> None:
    """Up to an offset, up to the end, beyond it."""
    _fill(peer, "delete-records")
    for label, offset, partition in (
        ("inside a batch", 3, 0),
        ("lower again", 1, 0),
        ("beyond", 99, 0),
        ("negative", -2, 0),
        ("all", -1, 0),
        ("missing partition", 0, 4),
    ):
        one = DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name="delete-records", partitions=[one])], timeout_ms=5000
        )
        peer.ask(label, request, 2)
        peer.ask(f"{label}: earliest", _list("delete-records", -2), 7)
    peer.ask("read what is deleted", fetch_request("delete-records", 0), 11)
