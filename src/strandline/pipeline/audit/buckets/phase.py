"""The buckets of all partitions of an audit: from the leaders' states to findings.

How:    the leaders were asked before the replicas were: what was live then is read now. An object
        that is gone is looked up once more in the leader's state, for it may have been retired.
Owns:   the audits of the partitions' buckets.
Source: decision 0052, "Buckets"."""

from collections.abc import Callable, Collection, Mapping, Sequence

from strandline.client.buckets.options import BucketOptions
from strandline.pipeline.audit.buckets.objects import ObjectResult, ObjectTask
from strandline.pipeline.audit.buckets.partition import BucketAudit
from strandline.pipeline.audit.buckets.tiers import Tiers
from strandline.pipeline.audit.narrowing import Answer
from strandline.pipeline.audit.partitions import PartitionAudit
from strandline.pipeline.audit.results import Place
from strandline.pipeline.audit.runners import Runner
from strandline.pipeline.audit.tasks import Bounds, Holder, Task, TaskResult
from strandline.storage.digests.ranges import DigestKind

LookAtTiers = Callable[[Collection[Place]], Tiers]


class BucketPhase:
    """See the module. `runner` reads objects and asks for digests; `near` the few that narrowing
    needs. `count`: called with each answer of a broker; `count_bytes`: with what was read of an
    object."""

    def __init__(
        self,
        options: BucketOptions,
        *,
        runner: Runner,
        near: Runner,
        look: LookAtTiers,
        count: Callable[[TaskResult], None],
        count_bytes: Callable[[int], None],
    ) -> None:
        self._options = options
        self._runner = runner
        self._near = near
        self._look = look
        self._count = count
        self._count_bytes = count_bytes
        self._audits: dict[Place, BucketAudit] = {}

    def run(
        self,
        tiers: Tiers,
        audits: Mapping[Place, PartitionAudit],
        *,
        range_bytes: int,
        timeout_ms: int,
        on_planned: Callable[[int], None],
    ) -> None:
        """Add what is found to the results of these audits of replicas, which have ended."""
        for place, reason in tiers.unknown.items():
            audits[place].result.skip_bucket("any", reason)
        self._audits = {
            place: BucketAudit(
                view, audits[place], self._options, range_bytes=range_bytes, timeout_ms=timeout_ms
            )
            for place, view in tiers.views.items()
        }
        tasks: list[Task] = []
        objects: list[ObjectTask] = []
        for one in self._audits.values():
            of_replica, of_buckets = one.plan()
            tasks += of_replica
            objects += of_buckets
        on_planned(sum(one.entry.size_bytes for one in objects))
        self._runner.run(tasks, self._take)
        self._runner.run_objects(objects, self._take_object)
        tasks, objects = [], []
        for one in self._audits.values():
            of_replica, of_buckets = one.plan_tables()
            tasks += of_replica
            objects += of_buckets
        self._runner.run(tasks, self._take)
        self._runner.run_objects(objects, self._take_object)
        self._leave_out_retired()
        for one in self._audits.values():
            one.conclude(_Asking(self._near, one, self._count).ask)

    def _take(self, answer: TaskResult) -> None:
        self._count(answer)
        target = answer.task.target
        self._audits[target.topic, target.partition].take(answer)

    def _take_object(self, answer: ObjectResult) -> None:
        self._count_bytes(answer.read_bytes)
        task = answer.task
        self._audits[task.topic, task.partition].take_object(answer)

    def _leave_out_retired(self) -> None:
        """Objects that lack something, and count no more by now, are no concern; tables of
        different times cannot be compared."""
        doubtful = [place for place, one in self._audits.items() if one.is_doubtful]
        if not doubtful:
            return
        now = self._look(doubtful)
        for place in doubtful:
            if place in now.views:
                self._audits[place].keep(now.views[place].names, now.views[place].ends)
            elif place not in now.unknown:
                self._audits[place].keep(frozenset(), {})


class _Asking:
    """Asks a replica and buckets for the digests that narrowing needs."""

    def __init__(
        self, runner: Runner, audit: BucketAudit, count: Callable[[TaskResult], None]
    ) -> None:
        self._runner = runner
        self._audit = audit
        self._count = count

    def ask(
        self, kind: DigestKind, ranges: Sequence[Bounds], holders: Sequence[Holder]
    ) -> Mapping[Holder, Answer]:
        """See `narrowing.Ask`."""
        found: dict[Holder, Answer] = {}

        def take(answer: TaskResult) -> None:
            self._count(answer)
            found[answer.task.target.broker] = answer

        def take_object(answer: ObjectResult) -> None:
            found[answer.task.bucket] = answer

        tasks, objects = self._audit.tasks_for(kind, ranges, holders)
        self._runner.run(tasks, take)
        self._runner.run_objects(objects, take_object)
        return found
