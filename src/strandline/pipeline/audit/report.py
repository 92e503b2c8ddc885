"""The result of an audit as one HTML page: the daily proof.

Why:    an auditor wants to see what was compared, not only that all is well.
How:    `pipeline.reports.page`; the same facts as the lines for a terminal."""

from collections.abc import Sequence
from datetime import UTC, datetime

from strandline.pipeline.audit.results import AuditResult, PartitionResult, Verdict
from strandline.pipeline.audit.text import MIB, cost_line, verdict_line
from strandline.pipeline.reports.page import Section, Table, render_page

ROWS_MAX = 500
"""Partitions on the page; those that are not equal come first."""
_ORDER = (Verdict.DIFFERENT, Verdict.INCOMPLETE, Verdict.EQUAL)


def render_report(result: AuditResult) -> str:
    """The page."""
    began = datetime.fromtimestamp(result.started_ms / 1000, UTC)
    summary = (
        f"Cluster {result.cluster_id}, {began:%Y-%m-%d %H:%M:%S} UTC. Every record that was "
        "committed when the audit began was to be found on every replica, byte for byte; in "
        "compacted topics the last record of each key."
    )
    source = (
        "Closed segments were read from the disk, not from the page cache."
        if result.from_disk
        else "Files were read through the page cache of each broker."
    )
    sections = [
        Section("What was compared", (f"{cost_line(result)}. {source}",), (_brokers(result),)),
        *_buckets(result),
        *_findings(result),
        *_not_compared(result),
        Section("Partitions", (), (_partitions(result.partitions),)),
    ]
    title = "Audit of replicas and buckets" if result.bucket_bytes else "Audit of replicas"
    return render_page(title, sections, summary=summary, verdict=verdict_line(result))


def _brokers(result: AuditResult) -> Table:
    def count(broker: int) -> int:
        return sum(1 for one in result.partitions if broker in one.brokers)

    missed: dict[int, set[tuple[str, int]]] = {}
    for one in result.not_compared:
        missed.setdefault(one.broker, set()).add((one.topic, one.partition))
    return Table(
        ("broker", "region", "replicas", "compared", "differences"),
        [
            (
                str(broker),
                region or "-",
                count(broker),
                count(broker) - len(missed.get(broker, ())),
                sum(1 for one in result.findings if broker in one.brokers),
            )
            for broker, region in result.brokers.items()
        ],
    )


def _buckets(result: AuditResult) -> list[Section]:
    names = sorted({name for one in result.partitions for name in one.buckets})
    if not names:
        return []
    rows = []
    for name in names:
        parts = [one.buckets[name] for one in result.partitions if name in one.buckets]
        rows.append(
            (
                name,
                len(parts),
                sum(one.object_count for one in parts),
                round(sum(one.size_bytes for one in parts) / MIB, 2),
                sum(1 for one in result.findings if name in one.buckets),
            )
        )
    text = (
        "Every object that the partitions' logs name was read, and each checksum compared. Records "
        "that replicas have, too, were compared with those; older ones between buckets."
    )
    heads = ("bucket", "partitions", "objects", "MiB", "differences")
    return [Section("Buckets", (text,), (Table(heads, rows),))]


def _findings(result: AuditResult) -> list[Section]:
    if not result.findings:
        return []
    rows = [
        (
            one.topic,
            one.partition,
            one.offset,
            one.end_offset,
            ", ".join(map(str, (*one.brokers, *one.buckets))),
            str(one.kind),
            f"{one.reason}; object {one.object_name}" if one.object_name else one.reason,
        )
        for one in result.findings
    ]
    heads = ("topic", "partition", "offset", "before", "broker or bucket", "what", "why")
    return [Section("Differences", (), (Table(heads, rows[:ROWS_MAX]),))]


def _not_compared(result: AuditResult) -> list[Section]:
    if not result.not_compared:
        return []
    rows = [
        (one.topic, one.partition, one.bucket or str(one.broker), one.reason)
        for one in result.not_compared
    ]
    table = Table(("topic", "partition", "broker or bucket", "why"), rows[:ROWS_MAX])
    text = "An audit never calls these equal: nothing is known of them."
    return [Section("Not compared", (text,), (table,))]


def _partitions(partitions: Sequence[PartitionResult]) -> Table:
    ordered = sorted(partitions, key=lambda one: _ORDER.index(one.verdict))
    hidden = len(ordered) - ROWS_MAX
    return Table(
        (
            "topic",
            "partition",
            "verdict",
            "from",
            "before",
            "records",
            "MiB",
            "brokers",
            "behind at first",
            "notes",
        ),
        [
            (
                one.topic,
                one.partition,
                str(one.verdict),
                one.start,
                one.end,
                one.records,
                round(one.size_bytes / MIB, 2),
                ", ".join(map(str, one.brokers)),
                "-" if one.skew < 0 else one.skew,
                _notes(one),
            )
            for one in ordered[:ROWS_MAX]
        ],
        caption=f"{hidden} more partitions are equal." if hidden > 0 else "",
    )


def _notes(one: PartitionResult) -> str:
    notes = ["last record of each key"] if one.kind == "latest" else []
    notes += [
        f"broker {broker} begins at {start} (retention)"
        for broker, start in sorted(one.expired.items())
    ]
    if len(one.brokers) == 1:
        notes.append("one replica: verified only")
    return "; ".join(notes)
