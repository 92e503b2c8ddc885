"""Asks one broker for the digests of some ranges of one replica, until it has them all.

Why:    a broker digests 64 MiB for one request, may be busy, and may restart meanwhile.
How:    ask; the first ranges are answered -> ask for the rest. A damaged batch ends an answer: the
        range that holds it is left without a digest, and the task goes on behind it.
        Tasks and their results are plain values: they travel to executors and back.
Owns:   one connection."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from strandline.base.errors import StrandlineError
from strandline.client.access import Access
from strandline.client.errors import CannotConnectError
from strandline.client.wire.connection import Connection
from strandline.model.cluster import Address
from strandline.pipeline.audit.wire import CountingTransport
from strandline.protocol.errors import Error, message_of
from strandline.protocol.messages.digest_replica import (
    DigestRange,
    DigestReplicaRequest,
    DigestReplicaResponse,
    RangeDigestResult,
)
from strandline.storage.digests.ranges import DIGEST_BYTES, DigestKind

CONNECT_TIMEOUT_MS = 3_000
PAUSE_MS = 100
SLOWEST_BYTES_PER_MS = 1_000
"""A broker that digests less than 1 MB/s counts as silent."""
SHARES_MAX = 4_096
_MODULUS = 1 << (8 * DIGEST_BYTES)

Bounds = tuple[int, int]
"""[start, end) in offsets."""
Holder = int | str
"""What has records: a broker, by its id, or a bucket, by its region."""


@dataclass(frozen=True, slots=True)
class Target:
    """A replica: the broker, its address, and the partition."""

    broker: int
    host: str
    port: int
    topic: str
    topic_id: str
    partition: int


@dataclass(frozen=True, slots=True)
class Task:
    """Ranges to digest, ascending; without ranges, only the replica is described. `timeout_ms`:
    for how long the broker may be away or silent; `size_bytes`: about what it has to read for one
    request."""

    target: Target
    kind: DigestKind
    ranges: tuple[Bounds, ...]
    timeout_ms: int
    first_markers: bool = False
    from_disk: bool = False
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Digest:
    """One range of one replica."""

    records: int
    batches: int
    markers: int
    size_bytes: int
    first_offset: int
    last_offset: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Rot:
    """A damaged or missing batch; `end_offset`: where sound batches follow, -1 if not known."""

    offset: int
    end_offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A replica as its broker describes it. `high_watermark`: below it, everything is committed
    and here. `open_segment`: compaction has used no record from there on."""

    is_leader: bool
    leader_epoch: int
    log_start: int
    high_watermark: int
    log_end: int
    log_bytes: int
    is_compacted: bool
    may_expire: bool
    open_segment: int


@dataclass(slots=True)
class TaskResult:
    """`digests`: {range: its digest}; a range without one was damaged, is not there any more, or
    was not reached because of `problem`."""

    task: Task
    seen: Seen | None = None
    digests: dict[Bounds, Digest] = field(default_factory=dict)
    damage: dict[Bounds, Rot] = field(default_factory=dict)
    problem: str = ""
    is_silent: bool = False
    wire_bytes: int = 0


class BrokerLine:
    """The tasks for one broker, one after the other, on one connection."""

    def __init__(self, access: Access | None = None) -> None:
        self._transport = CountingTransport(access)
        self._connection: Connection | None = None

    def run(self, task: Task) -> TaskResult:
        """Run one task. Never raises a StrandlineError: that is the result's `problem`."""
        before = self._transport.wire_bytes
        result = TaskResult(task)
        try:
            if task.kind.is_latest and task.ranges:
                self._run_shares(result)
            else:
                self._run_ranges(result)
        except StrandlineError as error:
            result.problem = str(error)
            result.is_silent = isinstance(error, CannotConnectError)
        result.wire_bytes = self._transport.wire_bytes - before
        return result

    def skip(self, task: Task, silent: TaskResult) -> TaskResult:
        """The result of a task for a broker that gave no answer to another."""
        return TaskResult(task, problem=silent.problem, is_silent=True)

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # ---- ranges --------------------------------------------------------------------------------

    def _run_ranges(self, result: TaskResult) -> None:
        left = list(result.task.ranges)
        is_first = True
        while is_first or left:
            is_first = False
            answer = self._ask(result.task, left)
            result.seen = _seen(answer)
            if answer.error_code == Error.OFFSET_OUT_OF_RANGE:
                if left and left[-1][1] > answer.high_watermark:
                    result.problem = f"its committed log ends at offset {answer.high_watermark} now"
                    return
                # Retention has removed the first of them meanwhile.
                left = [one for one in left if one[0] > answer.log_start_offset]
                if not left:
                    return
                continue
            if answer.error_code:
                result.problem = _refusal(answer)
                return
            for bounds, one in zip(left, answer.ranges, strict=False):
                result.digests[bounds] = _digest(one)
            left = left[len(answer.ranges) :]
            if answer.damaged_offset >= 0 and left:
                result.damage[left.pop(0)] = _rot(answer)
            elif not answer.ranges and left:
                result.problem = "it answers no range"
                return

    def _run_shares(self, result: TaskResult) -> None:
        """Ask for share after share of the keys, and add up; with more shares if they are too
        large."""
        ranges = result.task.ranges
        count = 1
        while count <= SHARES_MAX:
            sums: list[RangeDigestResult] = []
            for share in range(count):
                answer = self._ask(result.task, ranges, share=(share, count))
                result.seen = _seen(answer)
                if answer.error_code == Error.POLICY_VIOLATION:
                    break
                if answer.error_code:
                    result.problem = _refusal(answer)
                    return
                if answer.damaged_offset >= 0:
                    result.damage[ranges[0][0], ranges[-1][1]] = _rot(answer)
                    return
                if len(answer.ranges) != len(ranges):
                    result.problem = f"it answers {len(answer.ranges)} of {len(ranges)} ranges"
                    return
                sums = _added(sums, answer.ranges)
            else:
                for bounds, one in zip(ranges, sums, strict=True):
                    result.digests[bounds] = _digest(one)
                return
            count *= 4
        result.problem = "it has too many keys to compare"

    # ---- one request ---------------------------------------------------------------------------

    def _ask(
        self, task: Task, ranges: Sequence[Bounds], *, share: tuple[int, int] = (0, 1)
    ) -> DigestReplicaResponse:
        """One request, again while the broker is busy or away. Raises CannotConnectError."""
        target = task.target
        request = DigestReplicaRequest(
            topic=target.topic,
            topic_id=UUID(target.topic_id),
            partition=target.partition,
            kind=task.kind,
            ranges=[DigestRange(*one) for one in ranges],
            first_markers=task.first_markers or (bool(ranges) and ranges[0] != task.ranges[0]),
            key_share=share[0],
            key_share_count=share[1],
            from_disk=task.from_disk,
        )
        patience_ms = task.timeout_ms + task.size_bytes // SLOWEST_BYTES_PER_MS
        until = self._transport.monotonic_ms() + task.timeout_ms
        while True:
            try:
                connection = self._connect(target, min(CONNECT_TIMEOUT_MS, task.timeout_ms))
                answer = connection.call(request, DigestReplicaResponse, patience_ms)
            except CannotConnectError:
                self.close()
                if self._transport.monotonic_ms() >= until:
                    raise
            else:
                is_busy = answer.error_code == Error.THROTTLING_QUOTA_EXCEEDED
                if not is_busy or self._transport.monotonic_ms() >= until + patience_ms:
                    return answer
            self._transport.sleep_ms(PAUSE_MS)

    def _connect(self, target: Target, timeout_ms: int) -> Connection:
        address = Address(target.host, target.port)
        if self._connection is None or self._connection.is_closed:
            self._connection = Connection(
                self._transport, address, client_id="strandline-audit", timeout_ms=timeout_ms
            )
        return self._connection


def _seen(answer: DigestReplicaResponse) -> Seen | None:
    if answer.high_watermark < 0:
        return None
    return Seen(
        is_leader=answer.is_leader,
        leader_epoch=answer.leader_epoch,
        log_start=answer.log_start_offset,
        high_watermark=answer.high_watermark,
        log_end=answer.log_end_offset,
        log_bytes=answer.log_bytes,
        is_compacted=answer.is_compacted,
        may_expire=answer.may_expire,
        open_segment=answer.open_segment_offset,
    )


def _digest(one: RangeDigestResult) -> Digest:
    return Digest(
        records=one.record_count,
        batches=one.batch_count,
        markers=one.marker_count,
        size_bytes=one.size_bytes,
        first_offset=one.first_offset,
        last_offset=one.last_offset,
        digest=one.digest,
    )


def _rot(answer: DigestReplicaResponse) -> Rot:
    return Rot(answer.damaged_offset, answer.damaged_end_offset, answer.damage or "damaged")


def _refusal(answer: DigestReplicaResponse) -> str:
    if answer.error_code == Error.NOT_LEADER_OR_FOLLOWER:
        return "it has no open replica of the partition"
    if answer.error_code == Error.INCONSISTENT_TOPIC_ID:
        return "the topic was deleted and made anew"
    return answer.error_message or message_of(answer.error_code)


def _added(
    sums: Sequence[RangeDigestResult], more: Sequence[RangeDigestResult]
) -> list[RangeDigestResult]:
    """The sums of shares: each counts its own records, and the same batches."""
    if not sums:
        return list(more)
    return [
        RangeDigestResult(
            record_count=one.record_count + other.record_count,
            batch_count=one.batch_count,
            marker_count=one.marker_count + other.marker_count,
            size_bytes=one.size_bytes,
            digest=(
                (int.from_bytes(one.digest, "big") + int.from_bytes(other.digest, "big")) % _MODULUS
            ).to_bytes(DIGEST_BYTES, "big"),
        )
        for one, other in zip(sums, more, strict=True)
    ]
