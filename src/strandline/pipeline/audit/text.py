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
            return f"equal: every replica has the same {scope}{_and_buckets(result)}"
        case Verdict.DIFFERENT:
            count = _count(len(result.findings), "difference")
            return f"different: {count} in {scope}{_and_buckets(result)}"
        case Verdict.INCOMPLETE:
            return f"incomplete: no difference was found, but {_missed(result, replicas)}"


def _missed(result: AuditResult, replicas: int) -> str:
    """How much could not be compared."""
    missed = {(one.topic, one.partition, one.broker, one.bucket) for one in result.not_compared}
    of_buckets = sum(1 for *_, bucket in missed if bucket)
    parts = []
    if len(missed) > of_buckets:
        parts.append(f"{len(missed) - of_buckets} of {replicas} replicas")
    if of_buckets:
        parts.append(f"{_count(of_buckets, 'part')} of buckets")
    return f"{' and '.join(parts)} could not be compared"


def _and_buckets(result: AuditResult) -> str:
    """What was read of buckets, if anything."""
    parts = [one for each in result.partitions for one in each.buckets.values()]
    names = {name for each in result.partitions for name in each.buckets}
    if not parts:
        return ""
    objects = _count(sum(one.object_count for one in parts), "object")
    return f"; {objects} in {_count(len(names), 'bucket')}"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def cost_line(result: AuditResult) -> str:
    """What it took."""
    digested = result.digested_bytes
    share = f", {result.wire_bytes / digested:.4%} of that" if digested else ""
    text = (
        f"digested {digested / MIB:,.1f} MiB of replicas in {result.took_ms / 1000:.1f} s; "
        f"{result.wire_bytes:,} bytes on the wire{share}"
    )
    if result.bucket_bytes:
        text = f"{text}; read {result.bucket_bytes / MIB:,.1f} MiB of buckets"
    return text


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
        "bucket_bytes": result.bucket_bytes,
        "from_disk": result.from_disk,
        "brokers": [{"id": one, "region": region} for one, region in result.brokers.items()],
        "partitions": [_partition(one) for one in result.partitions],
        "findings": [
            {
                **asdict(one),
                "brokers": list(one.brokers),
                "buckets": list(one.buckets),
                "kind": str(one.kind),
            }
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
        "buckets": {name: asdict(part) for name, part in one.buckets.items()},
    }
