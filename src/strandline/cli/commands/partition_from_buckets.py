"""`strandline partition declare-lost --from-bucket`: partitions begin anew with what buckets have.

Why:    all logs of a partition may be lost, or end before what its buckets have.
How:    as `partition_declare_many`: every partition is forecast, one table shows what comes back
        and from which offset on records are lost, one question is asked, each is declared by
        itself. The controller reads the buckets for both.
Source: decision 0067; docs/operating/outages.md."""

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from strandline.base.errors import ApiError, OperatorError, StrandlineError
from strandline.base.json_value import Json
from strandline.cli.output import Table, counted, ids, print_error, print_line, print_table, show
from strandline.cli.text.loss_confirmation import (
    NOTHING_DONE,
    Candidate,
    How,
    confirm_all,
    declaring_user,
)

if TYPE_CHECKING:
    from strandline.client.cluster import Client
    from strandline.client.operations.survivors import Name, ReplicaLogs
    from strandline.protocol.messages.recover_partition import RecoverPartitionResponse

ALL = "all"


@dataclass(frozen=True, slots=True)
class FromBuckets:
    """`names`: the buckets to begin with, or "all". `accepts_missing`: objects may be missing."""

    names: tuple[str, ...]
    accepts_missing: bool


@dataclass(slots=True)
class _Result:
    """`failed`: (topic, partition, why); of a forecast, or of a declaration."""

    candidates: "list[Candidate[RecoverPartitionResponse]]" = field(default_factory=list)
    declared: "list[Candidate[RecoverPartitionResponse]]" = field(default_factory=list)
    failed: list[tuple[str, int, str]] = field(default_factory=list)


def recover_from_buckets(
    client: "Client", logs: "Mapping[Name, ReplicaLogs]", buckets: FromBuckets, how: How
) -> None:
    """Begin these partitions anew. Fails at the end if some could not."""
    from strandline.cli.exit_codes import ERROR

    result = _Result()
    for (topic, partition), found in logs.items():
        _forecast(client, topic, partition, found, buckets, result)
    if not result.candidates and len(result.failed) == 1:
        raise OperatorError(result.failed[0][2])
    if not (how.as_json and (how.is_sure or how.is_dry)):
        with contextlib.redirect_stdout(sys.stderr if how.as_json else sys.stdout):
            _show(result)
    if result.candidates and not how.is_dry:
        if not how.is_sure:
            confirm_all(result.candidates)
        by = declaring_user()
        for one in result.candidates:
            _declare(client, one, buckets, by, result)
    show(_json(result, how), as_json=how.as_json, people=lambda: _print(result, how))
    if result.failed:
        count = counted(len(result.failed), "partition")
        print_error(f"{count} did not begin anew")
        raise typer.Exit(ERROR)


def _forecast(
    client: "Client",
    topic: str,
    partition: int,
    logs: "ReplicaLogs",
    buckets: FromBuckets,
    result: _Result,
) -> None:
    from strandline.client.operations.recovery import forecast_recovery
    from strandline.protocol.messages.recover_partition import ALL_BUCKETS

    if not logs.answers:
        why = (
            f"{topic}-{partition}: none of brokers {ids(logs.hosts)} answers: start one of them, "
            "with an empty disk if need be"
        )
        result.failed.append((topic, partition, why))
        return
    lost = tuple(logs.silent)
    try:
        forecast = forecast_recovery(
            client,
            topic,
            partition,
            brokers=lost,
            grant=max(one.grant for one in logs.answers.values()),
            buckets=[ALL_BUCKETS if one == ALL else one for one in buckets.names],
            accepts_missing=buckets.accepts_missing,
        )
    except ApiError as error:
        result.failed.append((topic, partition, str(error)))
        return
    result.candidates.append(Candidate(topic, partition, lost, forecast))


def _declare(
    client: "Client",
    one: "Candidate[RecoverPartitionResponse]",
    buckets: FromBuckets,
    by: str,
    result: _Result,
) -> None:
    from strandline.client.operations.recovery import recover_partition

    try:
        recover_partition(
            client,
            one.topic,
            one.partition,
            brokers=one.lost,
            forecast=one.forecast,
            accepts_missing=buckets.accepts_missing,
            by=by,
        )
    except StrandlineError as error:
        result.failed.append((one.topic, one.partition, str(error)))
        return
    result.declared.append(one)


# ---- what is shown -------------------------------------------------------------------------------


def _show(result: _Result) -> None:
    if result.candidates:
        heads = ("PARTITION", "BUCKETS", "OBJECTS", "BYTES", "BEGINS AT", "LOST FROM", "LOGS LEFT")
        print_table(
            Table(
                title="all logs of these partitions are given up; they begin with what buckets "
                "have:",
                heads=heads,
                rows=[_row(one) for one in result.candidates],
                right=frozenset(("OBJECTS", "BYTES", "BEGINS AT", "LOST FROM")),
            )
        )
        print_line(
            "LOST FROM: records acknowledged at this offset and above are lost, and new records "
            "get these offsets"
        )
        print_line("LOGS LEFT: where logs end that are given up, too; none of them has more")
        for one in result.candidates:
            for line in _notes(one):
                print_line(f"{one.name}: {line}")
    for _, _, why in result.failed:
        print_line(f"left out: {why}")
    sys.stdout.flush()


def _row(one: "Candidate[RecoverPartitionResponse]") -> Sequence[str | int]:
    used = [each for each in one.forecast.buckets if each.is_wanted]
    ends = [f"broker {each.broker_id}: {each.log_end_offset}" for each in one.forecast.logs]
    return (
        one.name,
        ",".join(each.bucket for each in used),
        sum(each.object_count for each in used),
        sum(each.size_bytes for each in used),
        min(each.start_offset for each in used),
        one.forecast.log_end_offset,
        ", ".join(ends) or "-",
    )


def _notes(one: "Candidate[RecoverPartitionResponse]") -> list[str]:
    """What else the operator should know of the buckets."""
    lines = []
    end = one.forecast.log_end_offset
    acknowledged = max(each.high_watermark for each in one.forecast.buckets)
    if acknowledged > end:
        lines.append(
            f"at least {counted(acknowledged - end, 'record')} were acknowledged from offset "
            f"{end} on, and are lost"
        )
    for each in one.forecast.buckets:
        if each.failure:
            lines.append(f"bucket {each.bucket} does not say what it has: {each.failure}")
        elif not each.is_wanted and each.end_offset > 0:
            lines.append(
                f"bucket {each.bucket} has offsets {each.start_offset} to {each.end_offset - 1}, "
                "and is not named: its objects count no more"
            )
        if each.is_wanted and each.added_count:
            lines.append(
                f"bucket {each.bucket}: the last {counted(each.added_count, 'object')} line up, "
                "and no export names them yet"
            )
        if each.is_wanted and each.missing_count:
            lines.append(
                f"bucket {each.bucket} lacks {counted(each.missing_count, 'object')}, "
                f"{', '.join(each.missing)} among them"
            )
    return lines


def _print(result: _Result, how: How) -> None:
    if how.is_dry:
        print_line(NOTHING_DONE)
        return
    for one in result.declared:
        print_line(
            f"{one.name} begins anew with offset {one.forecast.log_end_offset}; what buckets have "
            "is read from there"
        )
    for _, _, why in result.failed:
        print_line(why)


def _json(result: _Result, how: How) -> Json:
    def told(one: "Candidate[RecoverPartitionResponse]") -> Json:
        forecast = one.forecast
        return {
            "topic": one.topic,
            "partition": one.partition,
            "lost": [int(each) for each in one.lost],
            "grant": forecast.grant,
            "lost_from": forecast.log_end_offset,
            "buckets": [
                {
                    "bucket": each.bucket,
                    "used": each.is_wanted,
                    "failure": each.failure or None,
                    "start": each.start_offset,
                    "end": each.end_offset,
                    "objects": each.object_count,
                    "bytes": each.size_bytes,
                    "not_exported": each.added_count,
                    "missing": list(each.missing),
                    "high_watermark": each.high_watermark,
                }
                for each in forecast.buckets
            ],
            "text": list(_notes(one)),
        }

    return {
        "declared": not how.is_dry,
        "partitions": [told(one) for one in (result.candidates if how.is_dry else result.declared)],
        "failed": [
            {"topic": topic, "partition": partition, "reason": why}
            for topic, partition, why in result.failed
        ],
    }
