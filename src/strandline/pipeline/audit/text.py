"""The result of an audit as lines for a terminal, and as JSON.

Why:    the verdict comes first, then what differs, then what could not be compared."""

from collections.abc import Iterator
from dataclasses import asdict

from strandline.pipeline.audit.results import AuditResult, PartitionResult, Verdict

LINES_MAX = 20
"""Findings, and replicas that were not compared, that are listed one by one."""
MIB = 1 << 20


def verdict_line(result: AuditResult) -> str:
    """The verdict, in one line."""
    partitions = len(result.partitions)
    replicas = sum(len(one.brokers) for one in result.partitions)
    records = sum(one.records for one in result.partitions)
    scope = (
        f"{_count(records, 'record')} in {_count(partitions, 'partition')}, "
        f"{_count(replicas, 'replica')}"
    )
    match result.verdict:
        case Verdict.EQUAL:
            return f"equal: every replica has the same {scope}"
        case Verdict.DIFFERENT:
            return f"different: {_count(len(result.findings), 'difference')} in {scope}"
        case Verdict.INCOMPLETE:
            count = len({(one.topic, one.partition, one.broker) for one in result.not_compared})
            return (
                f"incomplete: no difference was found, but {count} of {replicas} replicas could "
                "not be compared"
            )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def cost_line(result: AuditResult) -> str:
    """What it took."""
    digested = result.digested_bytes
    share = f", {result.wire_bytes / digested:.4%} of that" if digested else ""
    return (
        f"digested {digested / MIB:,.1f} MiB of replicas in {result.took_ms / 1000:.1f} s; "
        f"{result.wire_bytes:,} bytes on the wire{share}"
    )


def lines_of(result: AuditResult) -> Iterator[str]:
    """All that a person needs."""
    yield verdict_line(result)
    yield from (f"  {line}" for line in _first([one.text for one in result.findings]))
    if result.not_compared:
        yield "not compared:"
        yield from (f"  {line}" for line in _first([one.text for one in result.not_compared]))
    yield cost_line(result)


def _first(lines: list[str]) -> list[str]:
    if len(lines) <= LINES_MAX:
        return lines
    return [*lines[:LINES_MAX], f"and {len(lines) - LINES_MAX} more; --json lists all"]


def as_json(result: AuditResult) -> dict[str, object]:
    """All of it, without the ranges, which the table has."""
    return {
        "verdict": str(result.verdict),
        "cluster_id": result.cluster_id,
        "started_ms": result.started_ms,
        "took_ms": result.took_ms,
        "digested_bytes": result.digested_bytes,
        "wire_bytes": result.wire_bytes,
        "from_disk": result.from_disk,
        "brokers": [{"id": one, "region": region} for one, region in result.brokers.items()],
        "partitions": [_partition(one) for one in result.partitions],
        "findings": [
            {**asdict(one), "brokers": list(one.brokers), "kind": str(one.kind)}
            for one in result.findings
        ],
        "not_compared": [asdict(one) for one in result.not_compared],
    }


def _partition(one: PartitionResult) -> dict[str, object]:
    return {
        "topic": one.topic,
        "partition": one.partition,
        "verdict": str(one.verdict),
        "kind": one.kind,
        "brokers": list(one.brokers),
        "start_offset": one.start,
        "end_offset": one.end,
        "records": one.records,
        "size_bytes": one.size_bytes,
        "high_watermark_skew": None if one.skew < 0 else one.skew,
        "begins_later": {str(broker): start for broker, start in one.expired.items()},
        "differing_ranges": one.differing_ranges,
    }
