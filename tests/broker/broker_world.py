"""A broker's handlers without sockets: real router, handlers and logs, a replication that obeys the
test, and virtual time."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import NamedTuple, TypeVar, cast
from uuid import UUID

from strandline.base.errors import ApiError, StorageError
from strandline.broker.context import RequestContext, Services
from strandline.broker.handler_table import HANDLERS
from strandline.broker.server.router import Router
from strandline.config.broker import BrokerConfig, BrokerSection, ClusterSection
from strandline.controller.commands import Answer, Command
from strandline.model.cluster import (
    Address,
    Broker,
    Cluster,
    Endpoint,
    Labels,
    NearAddress,
    Partition,
    Topic,
)
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId, Offset
from strandline.protocol.codec import decode
from strandline.protocol.errors import Error
from strandline.protocol.headers import decode_response_header, encode_request
from strandline.protocol.table import Message
from strandline.raft.group.configuration import Configuration
from strandline.records.batch import BatchHeader, read_header
from strandline.records.marker import build_epoch_marker
from strandline.records.record import Record, build_batch
from strandline.replication.replica.tier import RemoteOffsetError
from strandline.replication.waiters import Watch, Watchers
from strandline.security.sasl.mechanism import Mechanism
from strandline.security.session import Session
from strandline.simulation.disk.disk import HostDisk, SimDisk
from strandline.simulation.world.caller import answer_bytes
from strandline.simulation.world.clock import WALL_START_MS, HostClock, SimClock
from strandline.simulation.world.loop import SimLoop
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import US_PER_MS, Scheduler
from strandline.storage.config import LogConfig
from strandline.storage.log.log import Log
from strandline.storage.log.reads import RecordSlices
from strandline.tiered.state.tier import TierState

SELF = BrokerId(1)
OTHER = BrokerId(2)
THIRD = BrokerId(3)
NOW_MS = WALL_START_MS
CORRELATION = 77
R = TypeVar("R", bound=Message)


class Outcome(NamedTuple):
    """As replication's AppendResult."""

    error_code: int
    base_offset: int
    log_start_offset: int
    message: str = ""


class ObedientReplica:
    """A replica that leads, commits and serves when the test says so; its log is a real one."""

    def __init__(self, group: GroupId, name: str, log: Log) -> None:
        self.group = group
        self.name = name
        self.log = log
        self.failed: Exception | None = None
        self.is_leader = True
        self.knows_start = True
        self.self_id = self.leader_id = SELF
        self.epoch = Epoch(0)
        self.unheard_epoch = Epoch(0)
        self.can_serve_reads = True
        self.high_watermark = Offset(0)
        self.commits_at_once = True
        self.waiting: list[Callable[[], None]] = []
        # What `appender` says of itself.
        self.is_holding = False
        self.acks_seen: list[int] = []
        self.configuration = Configuration(voters=(SELF, OTHER, THIRD))
        self.in_sync_now = [SELF, OTHER, THIRD]
        self.watchers = Watchers()
        # What `transfer` says of itself.
        self.is_under_way = False
        self.read_count = 0
        self.local_start: Offset | None = None
        """Records below are in buckets only, however many the log has; None: all are local."""
        self.tier = SimpleNamespace(state=TierState())
        self.lead(epoch=1)

    @property
    def appender(self) -> "ObedientReplica":
        return self

    def note_refused(self, headers: Sequence[BatchHeader], code: int) -> None:
        """See `Appender`."""

    @property
    def transfer(self) -> "ObedientReplica":
        return self

    @property
    def log_start_offset(self) -> Offset:
        return self.log.start_offset

    @property
    def local_log_start_offset(self) -> Offset:
        return self.log.start_offset if self.local_start is None else self.local_start

    def is_remote(self, offset: Offset) -> bool:
        return self.log_start_offset <= offset < self.local_log_start_offset

    def epoch_at(self, offset: Offset) -> Epoch:
        return self.log.epoch_of(self.log.index_of(offset))

    def epoch_end_offset(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        return self.log.epoch_end_offset(epoch)

    @property
    def log_end_offset(self) -> Offset:
        return self.log.end_offset

    def lead(self, *, epoch: int) -> None:
        """Begin an epoch, with its marker."""
        self.is_leader, self.leader_id, self.epoch = True, SELF, Epoch(epoch)
        marker = build_epoch_marker(self.log.end_offset, self.epoch, NOW_MS)
        header = read_header(marker)
        assert header is not None
        self.log.append([marker], [header])
        self.watchers.notify()

    def follow(self, leader: BrokerId, *, epoch: int) -> None:
        """Another broker leads."""
        self.is_leader, self.leader_id, self.epoch = False, leader, Epoch(epoch)
        self.watchers.notify()

    def in_sync(self) -> list[BrokerId]:
        return self.in_sync_now

    def replicate(
        self,
        buffers: Sequence[memoryview | bytearray],
        headers: Sequence[BatchHeader],
        *,
        acks: int,
        done: Callable[[Outcome], None],
    ) -> None:
        self.acks_seen.append(acks)
        if not self.is_leader:
            done(Outcome(Error.NOT_LEADER_OR_FOLLOWER, -1, -1))
            return
        base = offset = self.log.end_offset
        for header in headers:
            header.stamp(buffers[0], base_offset=offset, epoch=self.epoch)
            offset = header.next_offset
        self.log.append(buffers, headers)

        def commit() -> None:
            self.high_watermark = max(self.high_watermark, offset)
            self.watchers.notify()
            done(Outcome(Error.NONE, base, self.log.start_offset))

        if self.commits_at_once:
            commit()
        else:
            self.waiting.append(commit)

    def commit(self) -> None:
        """Commit everything that waits."""
        waiting, self.waiting = self.waiting, []
        for commit in waiting:
            commit()

    def write(self, *values: bytes, timestamp: int = NOW_MS) -> None:
        """Append one committed batch."""
        batch = batch_of(*values, timestamp=timestamp)
        header = read_header(batch)
        assert header is not None
        header.stamp(batch, base_offset=self.log.end_offset, epoch=self.epoch)
        self.log.append([batch], [header])
        self.high_watermark = self.log.end_offset
        self.watchers.notify()

    def read(self, offset: Offset, max_bytes: int) -> RecordSlices:
        self.read_count += 1
        if self.is_remote(offset):
            raise RemoteOffsetError(offset)
        return self.log.read_records(offset, max_bytes, self.high_watermark)

    def read_verified(self, offset: Offset, max_bytes: int) -> bytes:
        return self.read(offset, max_bytes).bytes()

    def on_unreadable(self, error: OSError | StorageError) -> None:
        raise AssertionError("the log of a test is readable") from error

    def watch(self, callback: Callable[[], None]) -> Watch:
        return self.watchers.add(callback)


@dataclass
class LeaderEntry:
    group: GroupId
    epoch: int
    leader: BrokerId


class ObedientStarts:
    """Log start offsets, as leaders report them: at once, unless the test withholds them."""

    def __init__(self) -> None:
        self.are_told = True
        self.known: set[GroupId] = set()
        self.asked: list[GroupId] = []

    def is_known(self, replica: ObedientReplica) -> bool:
        return replica.group in self.known

    def ask(self, replicas: Sequence[ObedientReplica], done: Callable[[], None]) -> None:
        groups = [replica.group for replica in replicas]
        self.asked += groups
        if self.are_told:
            self.known.update(groups)
        done()


class ObedientReplication:
    """The replicas of this broker, and what it knows of others'."""

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.log_start_offsets = ObedientStarts()
        self.replicas: dict[GroupId, ObedientReplica] = {}
        self.leaders: dict[GroupId, LeaderEntry] = {}
        self.silent: set[BrokerId] = set()
        self.hung_up: set[BrokerId] = set()
        self.on_leader_known: list[Callable[[GroupId], None]] = []
        self.round_trips_ms: dict[BrokerId, int] = {}

    def is_peer_alive(self, broker: BrokerId) -> bool:
        return broker not in self.silent

    def has_hung_up(self, broker: BrokerId) -> bool:
        return broker in self.hung_up

    def round_trip_ms(self, broker: BrokerId) -> int | None:
        return self.round_trips_ms.get(broker)


@dataclass
class ObedientController:
    """Answers commands with what the test has prepared."""

    cluster: Cluster
    answers: list[Answer] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    on_caught_up: list[Callable[[], None]] = field(default_factory=list)

    async def submit(self, command: Command, *, timeout_ms: int = 0) -> Answer:
        self.commands.append(command)
        if not self.answers:
            raise ApiError(Error.REQUEST_TIMED_OUT, "no controller answers")
        return self.answers.pop(0)


class Sink:
    """A connection that keeps its answers."""

    client_host = "/10.1.2.3"
    session = Session(host="10.1.2.3")
    exchange: Mechanism | None = None
    is_logging_in = False
    number = 1

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.answered: list[RequestContext] = []
        self.muted_ms: list[int] = []

    def on_answered(self, context: RequestContext) -> None:
        self.answered.append(context)

    def on_unblocked(self) -> None:
        pass

    def mute(self, duration_ms: int) -> None:
        self.muted_ms.append(duration_ms)

    def close(self, reason: str) -> None:
        self.closed.append(reason)


class BrokerWorld:
    """One broker (id 1) of a cluster of two, with the topics that the test adds."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.process = Process(self.scheduler, "broker-1")
        hardware = HostClock(self.scheduler)
        self.clock = SimClock(hardware, self.process)
        self.loop = SimLoop(self.scheduler, self.process, hardware)
        self.disk = SimDisk(
            HostDisk(self.scheduler, random.Random(1), flush_us=(0, 0)), self.process
        )
        # Of the clients that ask.
        self.session = Session(host="10.1.2.3")
        self.cluster = Cluster(cluster_id="cluster-1")
        for broker in (SELF, OTHER):
            self.cluster.brokers[broker] = Broker(
                id=broker,
                incarnation="x",
                rpc=Address("127.0.0.1", 33_000 + broker),
                kafka=Address(f"host-{broker}", 9_000 + broker),
                labels=Labels(region="east" if broker == SELF else "west"),
            )
        self.replication = ObedientReplication(self.disk)
        self.controller = ObedientController(self.cluster)
        self.services = Services(
            broker_id=SELF,
            config=BrokerConfig(
                broker=BrokerSection(id=SELF, data_directory="/data"),
                cluster=ClusterSection(seeds=("1@127.0.0.1:33001",)),
            ),
            clock=self.clock,
            rng=random.Random(1),
            replication=cast("object", self.replication),  # type: ignore[arg-type]
            controller=cast("object", self.controller),  # type: ignore[arg-type]
            coordinator=cast("object", SimpleNamespace()),  # type: ignore[arg-type]
        )
        self.router = Router(self.services, HANDLERS)

    # ---- the cluster ---------------------------------------------------------------------------

    def add_topic(self, name: str, partitions: int = 1, **configs: str) -> list[ObedientReplica]:
        """A topic whose partitions are all led here."""
        topic = Topic(
            name=name,
            id=UUID(int=len(self.cluster.topics) + 100),
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
        self.cluster.topics[name] = topic
        self.cluster.topic_names[topic.id] = name
        replicas = []
        for index in range(partitions):
            group = GroupId(self.cluster.next_group)
            self.cluster.next_group = GroupId(group + 1)
            partition = Partition(topic=name, index=index, group=group, replicas=(SELF, OTHER))
            topic.partitions.append(partition)
            self.cluster.groups[group] = partition
            log = self._run(lambda group=group: self._open_log(group))
            replica = ObedientReplica(group, f"{name}-{index}", log)
            self.replication.replicas[group] = replica
            self.replication.leaders[group] = LeaderEntry(group, 1, SELF)
            replicas.append(replica)
        self.cluster.version += 1
        return replicas

    def add_remote_topic(self, name: str, leader: BrokerId = OTHER) -> None:
        """A topic of one partition that lives elsewhere."""
        (replica,) = self.add_topic(name)
        del self.replication.replicas[replica.group]
        self.replication.leaders[replica.group] = LeaderEntry(replica.group, 4, leader)

    def _open_log(self, group: GroupId) -> Log:
        config = LogConfig(preallocate=False)
        return Log.open(self.disk, f"/data/logs/{group}", config=config, clock=self.clock)

    # ---- asking --------------------------------------------------------------------------------

    def send(self, request: Message, version: int, *, sink: Sink | None = None) -> "Pending":
        """Hand a request in; the answer may come later."""
        return self.send_frame(frame_of(request, version), sink=sink)

    def send_frame(self, frame: bytes, *, sink: Sink | None = None) -> "Pending":
        """Hand any bytes in; raises ProtocolError as the router does."""
        if sink is None:
            sink = Sink()
            sink.session = self.session
        pending = Pending(sink)
        pending.context = self.router.open(memoryview(bytearray(frame)), sink)
        self._run(lambda: self.router.run(pending.context))
        return pending

    def ask(self, request: Message, answer: type[R], version: int) -> R:
        """The answer to a request that needs no waiting but for tasks."""
        pending = self.send(request, version)
        self.advance(0)
        return pending.answer(answer)

    def advance(self, duration_ms: int) -> None:
        """Let time go by."""
        self.scheduler.run_until(self.scheduler.now_us + duration_ms * US_PER_MS)

    def run(self, callback: Callable[[], object]) -> None:
        """Do something as the broker's process would, and let what follows happen."""
        self._run(callback)
        self.advance(0)

    def _run(self, callback: Callable[[], R | object]) -> object:
        result: list[object] = []
        errors: list[Exception] = []

        def guarded() -> None:
            try:
                result.append(callback())
            except Exception as error:
                errors.append(error)

        self.process.run_now(guarded)
        if errors:
            raise errors[0]
        return result[0]

    def close(self) -> None:
        """Nothing may have gone wrong where nobody looks."""
        self.loop.close()
        assert self.loop.errors == []


def frame_of(request: Message, version: int) -> bytearray:
    """A request as the router gets it."""
    return encode_request(request, version, correlation_id=CORRELATION, client_id="tester")


class Pending:
    """A request on its way."""

    context: RequestContext

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    @property
    def is_answered(self) -> bool:
        return self.context.is_answered

    def answer_bytes(self) -> bytes:
        """The frame as it goes to the client."""
        assert self.is_answered
        data = answer_bytes(self.context)
        assert int.from_bytes(data[:4], "big") == len(data) - 4
        return data[4:]

    def answer(self, cls: type[R]) -> R:
        data = self.answer_bytes()
        context = self.context
        correlation, position = decode_response_header(data, context.api.key, context.api_version)
        assert correlation == CORRELATION
        message, end = decode(cls, data, position, context.api_version)
        assert end == len(data)
        return message


def batch_of(*values: bytes, timestamp: int = NOW_MS, **options: int) -> bytearray:
    """A batch of records with these values."""
    return build_batch(
        [
            Record(offset_delta=at, timestamp=timestamp, key=b"k", value=value)
            for at, value in enumerate(values)
        ],
        **options,
    )


__all__ = ["NO_BROKER", "BrokerWorld", "ObedientReplica", "Pending", "Sink", "batch_of"]


def near_broker(broker: Broker) -> Broker:
    """The same, at the host near-ID for clients of 10.0.0.0/8."""
    near = (NearAddress("10.0.0.0/8", Address(f"near-{broker.id}", 1)),)
    return replace(broker, endpoints=(Endpoint("PLAINTEXT", broker.kafka, "PLAINTEXT", near),))
