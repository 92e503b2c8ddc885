"""What an audit finds.

Why:    the page, the table, JSON and the exit code all say the same.
Owns:   nothing; plain values."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

Place = tuple[str, int]
"""(topic, partition)."""


class Verdict(StrEnum):
    """What is known of a partition, or of all."""

    EQUAL = "equal"
    """Every replica was compared, and no difference was found."""
    DIFFERENT = "different"
    """At least one replica differs, whatever else could not be compared."""
    INCOMPLETE = "incomplete"
    """No difference was found, but some replica could not be compared."""


class FindingKind(StrEnum):
    """How a replica or a bucket differs."""

    DIFFERENT = "different"
    """A sound batch or record is another one than elsewhere."""
    DAMAGED = "damaged"
    """A batch is rotten or missing, or an object is not the one that the log names."""
    LOST = "lost"
    """The log begins later than elsewhere, and no retention is set."""
    MISSING = "missing"
    """Records that the log says are in a bucket are not there: the object is gone, or cut."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference. `brokers` or `buckets` have it; it begins at `offset` and ends before
    `end_offset`, as far as is known. `object_name`: in which object of a bucket."""

    kind: FindingKind
    topic: str
    partition: int
    offset: int
    end_offset: int
    brokers: tuple[int, ...]
    reason: str
    buckets: tuple[str, ...] = ()
    object_name: str = ""

    @property
    def text(self) -> str:
        """One line."""
        places = [
            f"{word}{'s' * (len(names) > 1)} {', '.join(map(str, names))}"
            for word, names in (("on broker", self.brokers), ("in bucket", self.buckets))
            if names
        ]
        where = f"{self.topic}-{self.partition} offset {self.offset}"
        text = f"{where}: {self.kind} {' and '.join(places)}: {self.reason}"
        return f"{text}; object {self.object_name}" if self.object_name else text


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A part of a replica that could not be compared, and why; or of a bucket, if it is named:
    then `broker` is -1."""

    topic: str
    partition: int
    broker: int
    reason: str
    bucket: str = ""

    @property
    def text(self) -> str:
        """One line."""
        where = f"in bucket {self.bucket}" if self.bucket else f"on broker {self.broker}"
        return f"{self.topic}-{self.partition} {where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Row:
    """One range on one replica, or in one bucket if it is named (`broker` is -1 then), for the
    table. `status`: equal, different, damaged, expired (it begins later) or not compared."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    broker: int
    kind: str
    status: str
    records: int
    batches: int
    size_bytes: int
    digest: str
    bucket: str = ""


@dataclass(frozen=True, slots=True)
class BucketPart:
    """What a bucket has of a partition, as its log says: objects of [start, end)."""

    object_count: int
    size_bytes: int
    start: int
    end: int


@dataclass(slots=True)
class PartitionResult:
    """One partition. `start`, `end`: the offsets that were compared; `records`, `size_bytes`: of
    one replica. `skew`: how many records the slowest replica was behind when the audit began, -1
    if not known. `expired`: {broker: where its log begins}, for those that begin later than the
    partition because of retention."""

    topic: str
    partition: int
    kind: str
    brokers: tuple[int, ...]
    start: int = 0
    end: int = 0
    records: int = 0
    size_bytes: int = 0
    skew: int = -1
    expired: dict[int, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    not_compared: list[NotCompared] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    differing_ranges: int = 0
    buckets: dict[str, BucketPart] = field(default_factory=dict)
    """{bucket: what was read of it}."""

    @property
    def verdict(self) -> Verdict:
        """See `Verdict`."""
        if self.findings:
            return Verdict.DIFFERENT
        return Verdict.INCOMPLETE if self.not_compared else Verdict.EQUAL

    def find(self, finding: Finding) -> None:
        """Add a finding, unless it is known."""
        known = {(one.offset, one.brokers, one.buckets) for one in self.findings}
        if (finding.offset, finding.brokers, finding.buckets) not in known:
            self.findings.append(finding)

    def skip(self, broker: int, reason: str) -> None:
        """Note that a replica could not be compared, once for each reason."""
        self._skip(NotCompared(self.topic, self.partition, broker, reason))

    def skip_bucket(self, bucket: str, reason: str) -> None:
        """Note the same of a bucket."""
        self._skip(NotCompared(self.topic, self.partition, -1, reason, bucket))

    def _skip(self, missed: NotCompared) -> None:
        if missed not in self.not_compared:
            self.not_compared.append(missed)


@dataclass(slots=True)
class AuditResult:
    """One audit. Times are in ms, `started_ms` since 1970. `digested_bytes`: of all replicas;
    `wire_bytes`: that this audit sent and received, -1 if not known."""

    cluster_id: str
    started_ms: int
    took_ms: int
    brokers: dict[int, str]
    """{broker: its region}, of those that should hold something."""
    partitions: Sequence[PartitionResult]
    digested_bytes: int
    wire_bytes: int
    from_disk: bool
    bucket_bytes: int = 0
    """That were read out of buckets."""

    @property
    def verdict(self) -> Verdict:
        """Of all partitions."""
        found = {one.verdict for one in self.partitions}
        for worst in (Verdict.DIFFERENT, Verdict.INCOMPLETE):
            if worst in found:
                return worst
        return Verdict.EQUAL

    @property
    def findings(self) -> list[Finding]:
        """All, by topic, partition and offset."""
        found = [each for one in self.partitions for each in one.findings]
        return sorted(found, key=lambda one: (one.topic, one.partition, one.offset))

    @property
    def not_compared(self) -> list[NotCompared]:
        """All, in the same order."""
        return [each for one in self.partitions for each in one.not_compared]
