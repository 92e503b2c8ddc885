"""Fetch sessions: opened, continued, changed, refused."""

import time
from uuid import UUID

from differential.cases.registry import PAUSE_S, READY_TRIES, case, create, produce_request
from differential.peer import Peer
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.protocol.table import NO_ID
from strandline.records.record import Record, build_batch

NAMES, IDS = 12, 13
"""Versions: topics by name, and by id."""


class _Session:
    """One session of one topic; `epoch` is that of the next request."""

    def __init__(self, peer: Peer, topic: str, version: int) -> None:
        self.peer = peer
        self.topic = topic
        self.version = version
        self.topic_id = _id_of(peer, topic)
        self.id = 0
        self.epoch = 0

    def ask(
        self, label: str, *wanted: tuple[int, int], forget: tuple[int, ...] = (), version: int = 0
    ) -> None:
        """Read (partition, offset) from now on; the session goes on if the answer is no error."""
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in wanted
        ]
        request = FetchRequest(
            max_bytes=1 << 20,
            session_id=self.id,
            session_epoch=self.epoch,
            topics=[FetchTopic(self.topic, self.topic_id, partitions)] if wanted else [],
            forgotten_topics_data=(
                [ForgottenTopic(self.topic, self.topic_id, list(forget))] if forget else []
            ),
        )
        answer = self.peer.ask(label, request, version or self.version)
        if isinstance(answer, FetchResponse) and not answer.error_code:
            self.id = answer.session_id
            self.epoch += 1


def _id_of(peer: Peer, topic: str) -> UUID:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    answer = peer.ask_silently(request, 12)
    assert isinstance(answer, MetadataResponse)
    return answer.topics[0].topic_id


def _until_readable(session: _Session, *indexes: int) -> None:
    """Kafka names a leader in Metadata before that broker serves."""
    for _ in range(READY_TRIES):
        partitions = [FetchPartition(partition=index, partition_max_bytes=1) for index in indexes]
        topics = [FetchTopic(session.topic, session.topic_id, partitions)]
        answer = session.peer.ask_silently(FetchRequest(topics=topics), session.version)
        assert isinstance(answer, FetchResponse)
        if not any(one.error_code for one in answer.responses[0].partitions):
            return
        time.sleep(PAUSE_S)
    raise TimeoutError(f"{session.peer.name}: topic {session.topic} cannot be read")


def _write(peer: Peer, topic: str, partition: int) -> None:
    batch = build_batch([Record(offset_delta=0, timestamp=1_000, key=b"k", value=b"v")])
    peer.ask_silently(produce_request(topic, batch, partition=partition), 8)


def _walk(session: _Session) -> None:
    _until_readable(session, 0, 1, 2)
    session.ask("opened", (0, 0), (1, 0))
    session.ask("nothing new")
    _write(session.peer, session.topic, 1)
    session.ask("a record")
    session.ask("the record again")
    session.ask("read on", (1, 1))
    session.ask("another partition", (2, 0))
    session.ask("a partition that is none", (9, 0))
    session.ask("which is told again")
    session.ask("out of range", (0, 99), forget=(9,))
    session.ask("in range again", (0, 0))
    session.ask("nothing new again")
    session.ask("one forgotten", forget=(0,))
    session.ask("forgotten and added", (1, 0), forget=(1,))
    session.ask("after that")
    session.ask("all forgotten", forget=(0, 1, 2))
    session.epoch = 1
    session.ask("closed")


@case
def by_name(peer: Peer) -> None:
    """The life of a session with names."""
    create(peer, "sessions-names", partitions=3)
    _walk(_Session(peer, "sessions-names", NAMES))


@case
def by_id(peer: Peer) -> None:
    """The life of a session with ids."""
    create(peer, "sessions-ids", partitions=3)
    _walk(_Session(peer, "sessions-ids", IDS))


@case
def refused(peer: Peer) -> None:
    """Sessions that are not there, epochs out of turn, names where ids were."""
    create(peer, "sessions-refused")
    session = _Session(peer, "sessions-refused", NAMES)
    _until_readable(session, 0)
    session.ask("opened", (0, 0))
    for label, epoch in (("too early", 2), ("too late", 0x7FFFFFFF), ("negative", -2)):
        session.epoch = epoch
        session.ask(label)
    session.epoch = 1
    session.ask("by id", version=IDS)
    session.ask("goes on")
    known = session.id
    for label, number, epoch in (("unknown", 12_345, 1), ("none", 0, 1), ("below none", -5, 1)):
        session.id, session.epoch = number, epoch
        session.ask(label)
    session.id, session.epoch = known, 0
    session.ask("opened anew", (0, 0))
    session.epoch = -1
    session.ask("ended", (0, 0))
    session.topic_id = NO_ID
    session.id, session.epoch = 0, 0
    session.ask("unknown id", (0, 0), version=IDS)
    session.id, session.epoch = 0, 0
    session.ask("named twice", (0, 0), (0, 0))
