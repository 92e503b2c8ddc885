"""`strandline partition declare-lost` for many partitions: one table, one question, one result.

Why:    after two of three regions were lost, dozens of partitions wait. An operator who declares
        them one after the other reads the last tables no more.
How:    all partitions without a leader are forecast first. Those that need no declaration, or that
        the controller refuses, are left out with the reason. The rest is one table of exact
        offsets. After one confirmation each is declared with the logs of its forecast, so the
        controller refuses those that have changed since.
Source: decision 0027; docs/operating/outages.md."""

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from strandline.base.errors import ApiError, StrandlineError
from strandline.base.json_value import Json
from strandline.cli.output import Table, counted, ids, print_error, print_line, print_table, show
from strandline.cli.text.loss_confirmation import (
    NOTHING_DONE,
    NOTHING_YET,
    Candidate,
    How,
    confirm_all,
    declaring_user,
    estimate_line,
    not_now,
)

if TYPE_CHECKING:
    from strandline.client.cluster import Client
    from strandline.client.operations.survivors import ReplicaLogs
    from strandline.protocol.messages.declare_lost import DeclareLostResponse
    from strandline.protocol.messages.describe_exports import ExportedPartition

IN_BUCKET = "IN A BUCKET BELOW"
NOTHING_TO_DECLARE = "every partition has a leader: nothing to declare"


@dataclass(slots=True)
class _Result:
    """`left_out`, `failed`: (topic, partition, why)."""

    candidates: "list[Candidate[DeclareLostResponse]]"
    left_out: list[tuple[str, int, str]]
    declared: "list[tuple[Candidate[DeclareLostResponse], DeclareLostResponse]]"
    failed: list[tuple[str, int, str]]
    buckets: "dict[tuple[str, int], list[ExportedPartition]]" = field(default_factory=dict)
    """{partition: what each bucket has of it}"""
    without: str = ""
    """Why no controller answers a dry run; then the offsets are estimates."""


def declare_many(client: "Client", topics: Sequence[str] | None, how: How) -> None:
    """Declare the losses of all partitions without a leader, of these topics or of all. Fails at
    the end if some are left."""
    from strandline.cli.exit_codes import ERROR
    from strandline.client.operations.exports import describe_exports
    from strandline.client.operations.survivors import ask_leaderless_logs

    found = ask_leaderless_logs(client, topics)
    result = _Result([], [], [], [])
    for (topic, partition), logs in found.items():
        _forecast(client, topic, partition, logs, result, is_dry=how.is_dry)
    names = [(one.topic, one.partition) for one in result.candidates]
    result.buckets = describe_exports(client, names) if names else {}
    if not (how.as_json and (how.is_sure or how.is_dry)):
        with contextlib.redirect_stdout(sys.stderr if how.as_json else sys.stdout):
            _show_risks(result)
    if result.candidates and not how.is_dry:
        if not how.is_sure:
            confirm_all(result.candidates)
        by = declaring_user()
        for one in result.candidates:
            _declare(client, one, by, result)
    show(_json(result, how), as_json=how.as_json, people=lambda: _print(result, how))
    if result.failed or (result.left_out and not how.is_dry):
        left = len(result.failed) + len(result.left_out)
        print_error(
            f"{counted(left, 'partition')} without a leader "
            f"{'was' if left == 1 else 'were'} not declared lost"
        )
        raise typer.Exit(ERROR)


def _forecast(
    client: "Client",
    topic: str,
    partition: int,
    logs: "ReplicaLogs",
    result: _Result,
    *,
    is_dry: bool,
) -> None:
    """Ask the controller. Where there is none, a dry run estimates; otherwise this raises
    OperatorError, at the first partition."""
    from strandline.client.operations.losses import forecast_loss, is_without_controller

    if not logs.answers:
        why = f"none of brokers {ids(logs.hosts)} answers: no log is left to continue with"
        result.left_out.append((topic, partition, why))
        return
    lost = tuple(logs.silent)
    if not lost and not any(one.has_lost for one in logs.answers.values()):
        why = "every broker with a log answers or is reachable: there is nothing to give up"
        result.left_out.append((topic, partition, why))
        return
    if result.without:
        _estimate(client, topic, partition, logs, result)
        return
    grant = max((one.grant for one in logs.answers.values()), default=0)
    try:
        forecast = forecast_loss(client, topic, partition, brokers=lost, grant=grant)
    except StrandlineError as error:
        if isinstance(error, ApiError) and not is_without_controller(error):
            result.left_out.append((topic, partition, str(error)))
            return
        if not is_without_controller(error):
            raise
        if not is_dry:
            raise not_now(error) from error
        result.without = str(error)
        _estimate(client, topic, partition, logs, result)
        return
    result.candidates.append(Candidate(topic, partition, lost, forecast))


def _estimate(
    client: "Client", topic: str, partition: int, logs: "ReplicaLogs", result: _Result
) -> None:
    """By the logs that answer, where no controller does."""
    from strandline.cli.commands.partition_survivors import advice_lines, voters_may_leave
    from strandline.client.operations.losses import estimate_loss

    estimate = estimate_loss(logs)
    if estimate is None:
        shrinks = voters_may_leave(client, topic)
        advice = advice_lines(f"{topic} {partition}", logs, logs.judge(), shrinks=shrinks)
        result.left_out.append((topic, partition, advice[0]))
        return
    result.candidates.append(Candidate(topic, partition, tuple(logs.silent), estimate))


def _declare(
    client: "Client", one: "Candidate[DeclareLostResponse]", by: str, result: _Result
) -> None:
    from strandline.client.operations.losses import declare_lost

    try:
        done = declare_lost(
            client, one.topic, one.partition, brokers=one.lost, forecast=one.forecast, by=by
        )
    except StrandlineError as error:
        result.failed.append((one.topic, one.partition, str(error)))
        return
    result.declared.append((one, done))


# ---- what is shown -------------------------------------------------------------------------------


def _show_risks(result: _Result) -> None:
    """The table of all offsets at risk, and what is left out."""
    if result.candidates:
        heads = ["PARTITION", "GIVEN UP", "CONTINUES ON", "KEPT BELOW", "IN DOUBT", "LOST FROM"]
        if result.buckets:
            heads.append(IN_BUCKET)
        rows = [(name, *cells) for name, cells in _rows(result)]
        right = frozenset(("KEPT BELOW", "LOST FROM", IN_BUCKET))
        print_table(Table(title="offsets at risk:", heads=heads, rows=rows, right=right))
        print_line("KEPT BELOW: records below this offset are kept, and committed")
        print_line(
            "IN DOUBT: kept as on the broker that continues; if other records were acknowledged "
            "at these offsets, those are lost"
        )
        print_line(
            "LOST FROM: records acknowledged at this offset and above are lost, and new records "
            "get these offsets"
        )
        if result.buckets:
            print_line(
                f"{IN_BUCKET}: some bucket has the records below this offset, as they were "
                "committed"
            )
        if result.without:
            print_line(estimate_line(result.without))
    _show_reasons("left out", result.left_out)
    if not result.candidates and not result.left_out:
        print_line(NOTHING_TO_DECLARE)
    sys.stdout.flush()


def _rows(result: _Result) -> list[tuple[str, tuple[str | int, ...]]]:
    """(name, cells). Partitions of a topic that differ in nothing share a row, such as the empty
    ones."""
    from strandline.cli.text.bucket_ends import furthest
    from strandline.cli.text.explaining import ranges

    alike: dict[tuple[str, tuple[str | int, ...]], list[int]] = {}
    for one in result.candidates:
        buckets = result.buckets.get((one.topic, one.partition), [])
        cells = (
            ids(one.lost),
            f"broker {one.forecast.leader_id}",
            one.forecast.committed_offset,
            _doubtful(one.forecast),
            one.forecast.log_end_offset,
            *((furthest(buckets),) if result.buckets else ()),
        )
        alike.setdefault((one.topic, cells), []).append(one.partition)
    return [
        (f"{topic}-{some[0]}" if len(some) == 1 else f"{topic} {ranges(some)}", cells)
        for (topic, cells), some in alike.items()
    ]


def _doubtful(forecast: "DeclareLostResponse") -> str:
    first, end = forecast.committed_offset, forecast.log_end_offset
    return f"{first}-{end - 1}" if first < end else "-"


def _show_reasons(title: str, some: Sequence[tuple[str, int, str]]) -> None:
    """One line for each reason, with the partitions that share it."""
    from strandline.cli.text.explaining import ranges

    reasons: dict[tuple[str, str], list[int]] = {}
    for topic, partition, why in some:
        reasons.setdefault((topic, why), []).append(partition)
    for (topic, why), partitions in reasons.items():
        print_line(f"{title}: {topic} {ranges(partitions)}: {why}")


def _print(result: _Result, how: How) -> None:
    if how.is_dry and result.candidates:
        print_line(NOTHING_YET if result.without else NOTHING_DONE)
    for one, done in result.declared:
        print_line(
            f"{one.name} continues from offset {done.log_end_offset} on broker {done.leader_id}"
        )
    _show_reasons("failed", result.failed)
    if result.declared:
        count = len(result.candidates)
        print_line(f"{len(result.declared)} of {counted(count, 'partition')} declared lost")


def _json(result: _Result, how: How) -> Json:
    from strandline.cli.text.bucket_ends import buckets_json

    done = {id(one): answer for one, answer in result.declared}
    return {
        "dry_run": how.is_dry,
        "estimated": bool(result.without),
        "partitions": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "declared": id(one) in done,
                "lost": [int(broker) for broker in one.lost],
                "leader": one.forecast.leader_id,
                "grant": one.forecast.grant,
                "at_risk_from": one.forecast.committed_offset,
                "on_nobody_from": one.forecast.log_end_offset,
                "buckets": buckets_json(result.buckets.get((one.topic, one.partition), [])),
            }
            for one in result.candidates
        ],
        "left_out": [_reason(*one) for one in result.left_out],
        "failed": [_reason(*one) for one in result.failed],
    }


def _reason(topic: str, partition: int, why: str) -> Json:
    return {"topic": topic, "partition": partition, "why": why}
