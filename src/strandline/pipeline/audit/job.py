"""The audit of a cluster, from the list of topics to the result.

Why:    one order of steps, whether threads or Spark do the asking.
How:    topics -> replicas -> wait until they are in step -> digests -> damage split off
        -> conclusions. What is planned anew (compaction went on) takes the same way again.
        Buckets come last: they are compared with replicas that were found sound.
Owns:   the audits of all partitions.
Source: decision 0052."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from strandline.client.access import Access
from strandline.client.buckets.options import BucketOptions
from strandline.client.cluster import Client
from strandline.client.rights import require_cluster, require_topics
from strandline.client.views import ClusterView, TopicView
from strandline.config.addresses import parse_bootstrap
from strandline.model.access import Operation
from strandline.pipeline.audit.buckets.phase import BucketPhase, LookAtTiers
from strandline.pipeline.audit.buckets.tiers import Tiers, look_at_tiers
from strandline.pipeline.audit.partitions import PartitionAudit
from strandline.pipeline.audit.replicas import (
    Replicas,
    choose_topics,
    find_replicas,
    look,
    regions_of,
    wait_in_step,
)
from strandline.pipeline.audit.results import AuditResult, PartitionResult, Place
from strandline.pipeline.audit.runners import Runner, ThreadRunner
from strandline.pipeline.audit.tasks import Bounds, Task, TaskResult
from strandline.pipeline.audit.wire import CountingTransport
from strandline.storage.digests.ranges import DigestKind

ROUNDS_MAX = 3
"""How often a partition is planned anew because compaction went on."""
RANGE_BYTES = 16 << 20
CLIENT_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What is compared. No topics: all. `wait_ms`: how long replicas may take to catch up;
    `timeout_ms`: how long a broker or a bucket may be silent. `buckets`: what to compare besides
    replicas; None: no buckets. `access`: how brokers are reached; None: over plain connections."""

    bootstrap: str
    topics: tuple[str, ...] = ()
    with_internal: bool = False
    from_disk: bool = False
    wait_ms: int = 10_000
    timeout_ms: int = 30_000
    range_bytes: int = RANGE_BYTES
    buckets: BucketOptions | None = None
    access: Access | None = None


class Progress(Protocol):
    """Receives how far an audit is."""

    def on_planned(self, size_bytes: int) -> None:
        """So many more bytes are to be digested, on all replicas."""

    def on_digested(self, size_bytes: int) -> None:
        """So many more were."""

    def on_step(self, what: str) -> None:
        """What is done now."""


class Silent:
    """Tells nothing."""

    def on_planned(self, size_bytes: int) -> None:
        """See `Progress`."""

    def on_digested(self, size_bytes: int) -> None:
        """See `Progress`."""

    def on_step(self, what: str) -> None:
        """See `Progress`."""


class Audit:
    """See the module. `runner` asks for the digests, and reads objects; `near` asks for the little
    that the driver itself wants to know; `look` asks the leaders about buckets."""

    def __init__(
        self,
        options: AuditOptions,
        runner: Runner,
        progress: Progress | None = None,
        *,
        near: Runner | None = None,
        look: LookAtTiers | None = None,
    ) -> None:
        self._options = options
        self._runner = runner
        self.near = near or ThreadRunner(options.access)
        self._progress = progress or Silent()
        self._audits: dict[Place, PartitionAudit] = {}
        self._replicas: dict[Place, Replicas] = {}
        self._look = look or self._look_at_tiers
        self._wire_bytes = 0
        self._digested_bytes = 0
        self._bucket_bytes = 0

    def run(self) -> AuditResult:
        """Do all of it. Raises OperatorError for topics that do not exist, and ClientError if no
        broker answers."""
        options = self._options
        with self._client() as client:
            if options.access is not None:
                require_cluster(client, Operation.DESCRIBE)
            view, topics = choose_topics(
                client, options.topics, with_internal=options.with_internal
            )
            if options.access is not None:
                names = [one.name for one in topics]
                require_topics(client, names, Operation.READ, of_replicas=True)
            regions = regions_of(client, view, topics)
        return self.compare_topics(view, topics, regions)

    @contextmanager
    def _client(self) -> Iterator[Client]:
        """A client whose bytes count."""
        transport = CountingTransport(self._options.access)
        with Client(
            parse_bootstrap(self._options.bootstrap),
            client_id="strandline-audit",
            timeout_ms=min(self._options.timeout_ms, CLIENT_TIMEOUT_MS),
            transport=transport,
        ) as client:
            yield client
        self._wire_bytes += transport.wire_bytes

    def _look_at_tiers(self, places: Collection[Place]) -> Tiers:
        """See `LookAtTiers`."""
        with self._client() as client:
            return look_at_tiers(client, places, wait_ms=self._options.wait_ms)

    def compare_topics(
        self, view: ClusterView, topics: Sequence[TopicView], regions: Mapping[int, str]
    ) -> AuditResult:
        """The same for these topics of a cluster. `regions`: {broker: its region}, as far as it is
        known."""
        options = self._options
        started_ms, started = time.time_ns() // 1_000_000, time.monotonic()
        self._replicas = find_replicas(view, topics)
        self._audits = {
            place: PartitionAudit(
                one,
                range_bytes=options.range_bytes,
                timeout_ms=options.timeout_ms,
                from_disk=options.from_disk,
            )
            for place, one in self._replicas.items()
        }
        self._progress.on_step(f"looking at {len(self._replicas)} partitions")
        tiers = None if options.buckets is None else self._look(list(self._audits))
        self._wire_bytes += look(self._replicas, self.near, timeout_ms=options.timeout_ms)
        results = self._compare(list(self._audits))
        if options.buckets is not None and tiers is not None:
            self._compare_buckets(options.buckets, tiers)
        brokers = sorted({broker for one in self._replicas.values() for broker in one.brokers})
        return AuditResult(
            cluster_id=view.cluster_id,
            started_ms=started_ms,
            took_ms=round((time.monotonic() - started) * 1000),
            brokers={one: regions.get(one, "") for one in brokers},
            partitions=[results[place] for place in sorted(results)],
            digested_bytes=self._digested_bytes,
            wire_bytes=self._wire_bytes,
            from_disk=options.from_disk,
            bucket_bytes=self._bucket_bytes,
        )

    def _compare_buckets(self, buckets: BucketOptions, tiers: Tiers) -> None:
        """Compare what buckets hold with replicas, and with each other."""
        self._progress.on_step("reading buckets")
        phase = BucketPhase(
            buckets,
            runner=self._runner,
            near=self.near,
            look=self._look,
            count=self.count,
            count_bytes=self._count_bucket_bytes,
        )
        phase.run(
            tiers,
            self._audits,
            range_bytes=self._options.range_bytes,
            timeout_ms=self._options.timeout_ms,
            on_planned=self._progress.on_planned,
        )

    def _count_bucket_bytes(self, size_bytes: int) -> None:
        self._bucket_bytes += size_bytes
        self._progress.on_digested(size_bytes)

    def _compare(self, places: Sequence[Place]) -> dict[Place, PartitionResult]:
        """Compare these partitions; again those that compaction has overtaken."""
        results: dict[Place, PartitionResult] = {}
        for attempt in range(ROUNDS_MAX):
            self._digest(places)
            overtaken = self._overtaken(places)
            for place in places:
                audit = self._audits[place]
                if place in overtaken and attempt + 1 < ROUNDS_MAX:
                    continue
                if place in overtaken:
                    audit.give_up("compaction went on during the audit; try again later")
                self._progress.on_step(f"comparing {place[0]}-{place[1]}")
                results[place] = audit.conclude(_Asking(self, audit).ask)
            places = [place for place in places if place not in results]
            if not places:
                break
        return results

    def _digest(self, places: Sequence[Place]) -> None:
        """Plan these partitions, and have them digested."""
        options = self._options
        chosen = {place: self._replicas[place] for place in places}
        ends = {place: one.end for place, one in chosen.items()}
        self._progress.on_step("waiting for replicas to catch up")
        self._wire_bytes += wait_in_step(
            chosen, ends, self.near, wait_ms=options.wait_ms, timeout_ms=options.timeout_ms
        )
        tasks: list[Task] = []
        for place in places:
            planned = self._audits[place].plan(ends[place])
            tasks += planned
            brokers = {one.target.broker for one in planned}
            self._progress.on_planned(len(brokers) * self._audits[place].size_bytes)
        self._progress.on_step("digesting")
        while tasks:
            self._runner.run(tasks, self._take)
            tasks = [task for place in places for task in self._audits[place].more()]

    def _take(self, result: TaskResult) -> None:
        target = result.task.target
        self.count(result)
        self._progress.on_digested(sum(one.size_bytes for one in result.digests.values()))
        self._audits[target.topic, target.partition].take(result)

    def count(self, result: TaskResult) -> None:
        """Add up what a task took."""
        self._wire_bytes += result.wire_bytes
        self._digested_bytes += sum(one.size_bytes for one in result.digests.values())

    def _overtaken(self, places: Sequence[Place]) -> set[Place]:
        """The partitions whose differences may come from compaction: looks at their replicas
        anew."""
        doubtful = [place for place in places if self._audits[place].differs]
        if not doubtful:
            return set()
        chosen = {place: self._replicas[place] for place in doubtful}
        self._wire_bytes += look(chosen, self.near, timeout_ms=self._options.timeout_ms)
        return {place for place in doubtful if self._audits[place].is_overtaken}


class _Asking:
    """Asks several brokers for the digests that narrowing needs."""

    def __init__(self, owner: Audit, audit: PartitionAudit) -> None:
        self._owner = owner
        self._audit = audit

    def ask(
        self, kind: DigestKind, ranges: Sequence[Bounds], brokers: Sequence[int]
    ) -> Mapping[int, TaskResult]:
        """See `narrowing.Ask`."""
        found: dict[int, TaskResult] = {}

        def take(result: TaskResult) -> None:
            self._owner.count(result)
            found[result.task.target.broker] = result

        tasks = [self._audit.task(broker, kind, ranges) for broker in brokers]
        self._owner.near.run(tasks, take)
        return found
