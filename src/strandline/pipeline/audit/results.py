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
    """How a replica differs."""

    DIFFERENT = "different"
    """A sound batch or record is another one than elsewhere."""
    DAMAGED = "damaged"
    """A batch is rotten or missing."""
    LOST = "lost"
    """The log begins later than elsewhere, and no retention is set."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference. `brokers` have it; it begins at `offset` and ends before `end_offset`, as far
    as is known."""

    kind: FindingKind
    topic: str
    partition: int
    offset: int
    end_offset: int
    brokers: tuple[int, ...]
    reason: str

    @property
    def text(self) -> str:
        """One line."""
        word = "broker" if len(self.brokers) == 1 else "brokers"
        names = ", ".join(map(str, self.brokers))
        return (
            f"{self.topic}-{self.partition} offset {self.offset}: {self.kind} on {word} {names}: "
            f"{self.reason}"
        )


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A part of a replica that could not be compared, and why."""

    topic: str
    partition: int
    broker: int
    reason: str

    @property
    def text(self) -> str:
        """One line."""
        return f"{self.topic}-{self.partition} on broker {self.broker}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Row:
    """One range on one replica, for the table. `status`: equal, different, damaged, expired (it
    begins later) or not compared."""

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

    @property
    def verdict(self) -> Verdict:
        """See `Verdict`."""
        if self.findings:
            return Verdict.DIFFERENT
        return Verdict.INCOMPLETE if self.not_compared else Verdict.EQUAL

    def find(self, finding: Finding) -> None:
        """Add a finding, unless it is known."""
        known = {(one.offset, one.brokers) for one in self.findings}
        if (finding.offset, finding.brokers) not in known:
            self.findings.append(finding)

    def skip(self, broker: int, reason: str) -> None:
        """Note that a replica could not be compared, once for each reason."""
        missed = NotCompared(self.topic, self.partition, broker, reason)
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
