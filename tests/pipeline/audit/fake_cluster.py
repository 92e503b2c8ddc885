"""A cluster of logs on disks in memory: brokers answer DigestReplica from them, without sockets."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from tests.storage.digest_world import Copy

from strandline.client.buckets.options import BucketOptions
from strandline.client.errors import CannotConnectError
from strandline.client.views import BrokerView, ClusterView, PartitionView, TopicView
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId, Offset
from strandline.pipeline.audit.buckets.objects import ObjectTask
from strandline.pipeline.audit.buckets.phase import LookAtTiers
from strandline.pipeline.audit.job import Audit, AuditOptions
from strandline.pipeline.audit.results import AuditResult
from strandline.pipeline.audit.runners import OnObject, OnResult, ThreadRunner
from strandline.pipeline.audit.tasks import Bounds, BrokerLine, Task
from strandline.protocol.errors import Error
from strandline.protocol.messages.digest_replica import DigestReplicaResponse, RangeDigestResult
from strandline.storage.digests.contents import digest_contents
from strandline.storage.digests.latest import KeyShare, digest_latest
from strandline.storage.digests.ranges import Digested, DigestKind, OffsetRange

TOPIC = "t"
REQUEST_BYTES_MAX = 500


def shorten(copy: Copy) -> None:
    """Remove the first segments, as retention and a deletion of records do."""
    copy.flush()
    copy.log.remove_segments_before(copy.log.index_of(Offset(14)))
    assert copy.log.start_offset > 0


class FakeBroker:
    """One broker with one replica. `marks`: what it answers as its high watermark, one request
    after the other; then the log's end."""

    def __init__(self, copy: Copy) -> None:
        self.copy = copy
        self.is_silent = False
        self.marks: list[int] = []
        self.keys_max = 1_000
        self.compacted_from_request: int | None = None
        """The topic's configuration changes before this request."""
        self.shortened_from_request: int | None = None
        """Records are deleted here before this request."""
        self.request_count = 0

    def answer(
        self, task: Task, ranges: Sequence[Bounds], share: tuple[int, int]
    ) -> DigestReplicaResponse:
        """As the broker's handler does."""
        log = self.copy.log
        self.request_count += 1
        if self.request_count == self.shortened_from_request:
            shorten(self.copy)
        mark = self.marks.pop(0) if self.marks else log.end_offset
        answer = DigestReplicaResponse(
            log_start_offset=log.start_offset,
            high_watermark=mark,
            log_end_offset=log.end_offset,
            log_bytes=log.size_bytes(),
            is_compacted=log.config.has_been_compacted or self._is_compacted_now,
            may_expire=log.config.retention_bytes >= 0 or log.config.remote_storage,
            open_segment_offset=log.parts.open_segment_offset,
        )
        if not ranges:
            return answer
        if ranges[0][0] < log.start_offset or ranges[-1][1] > mark:
            answer.error_code = Error.OFFSET_OUT_OF_RANGE
            return answer
        digested = self._digest(task, ranges, share)
        answer.error_code = Error.POLICY_VIOLATION if digested.has_too_many_keys else Error.NONE
        for one in digested.ranges:
            answer.ranges.append(
                RangeDigestResult(
                    one.records,
                    one.batches,
                    one.markers,
                    one.size_bytes,
                    one.first_offset,
                    one.last_offset,
                    one.digest,
                )
            )
        if digested.damage is not None:
            answer.damaged_offset = digested.damage.offset
            answer.damaged_end_offset = digested.damage.end_offset
            answer.damage = digested.damage.reason
        return answer

    @property
    def _is_compacted_now(self) -> bool:
        since = self.compacted_from_request
        return since is not None and self.request_count >= since

    def _digest(self, task: Task, ranges: Sequence[Bounds], share: tuple[int, int]) -> Digested:
        wanted = [
            OffsetRange(
                Offset(start),
                Offset(end),
                first_markers=bool(at) or task.first_markers or ranges[0] != task.ranges[0],
            )
            for at, (start, end) in enumerate(ranges)
        ]
        parts = self.copy.log.parts.find(wanted[0].start, wanted[-1].end)
        if task.kind.is_latest:
            return digest_latest(
                parts,
                wanted,
                share=KeyShare(*share),
                keys_max=self.keys_max,
                pace=lambda _: True,
                has_markers=task.kind is DigestKind.LATEST,
            )
        return digest_contents(
            parts, wanted, kind=task.kind, bytes_max=REQUEST_BYTES_MAX, pace=lambda _: True
        )


class _Line(BrokerLine):
    def __init__(self, brokers: dict[int, FakeBroker]) -> None:
        super().__init__()
        self._brokers = brokers

    def _ask(
        self, task: Task, ranges: Sequence[Bounds], *, share: tuple[int, int] = (0, 1)
    ) -> DigestReplicaResponse:
        broker = self._brokers[task.target.broker]
        if broker.is_silent:
            raise CannotConnectError(f"broker {task.target.broker}: no answer in time")
        return broker.answer(task, ranges, share)


class FakeCluster:
    """Brokers 1, 2, 3..., one for each copy; the first leads."""

    def __init__(self, *copies: Copy) -> None:
        self.brokers = {at: FakeBroker(copy) for at, copy in enumerate(copies, start=1)}
        self.down: set[int] = set()

    def run(self, tasks: Sequence[Task], on_result: OnResult) -> None:
        """See `Runner`."""
        line = _Line(self.brokers)
        for task in tasks:
            result = line.run(task)
            if result.seen is not None:
                result.seen = replace(result.seen, is_leader=task.target.broker == 1)
            on_result(result)

    def run_objects(self, tasks: Sequence[ObjectTask], on_result: OnObject) -> None:
        """See `Runner`."""
        ThreadRunner().run_objects(tasks, on_result)

    def audit(
        self,
        *,
        range_bytes: int = 300,
        wait_ms: int = 0,
        buckets: BucketOptions | None = None,
        look: LookAtTiers | None = None,
    ) -> AuditResult:
        """Compare everything."""
        ids = tuple(self.brokers)
        view = ClusterView(
            "cluster",
            BrokerId(1),
            {
                BrokerId(one): BrokerView(BrokerId(one), Address("host", one), f"region-{one}")
                for one in ids
                if one not in self.down
            },
        )
        partition = PartitionView(0, BrokerId(1), 1, ids, ids, ())
        topic = TopicView(
            name=TOPIC, id=UUID(int=1), is_internal=False, error_code=0, partitions=(partition,)
        )
        options = AuditOptions(
            "host:1", wait_ms=wait_ms, range_bytes=range_bytes, timeout_ms=2_000, buckets=buckets
        )
        return Audit(options, self, near=self, look=look).compare_topics(
            view, [topic], {int(one): each.rack for one, each in view.brokers.items()}
        )
