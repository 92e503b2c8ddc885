"""`strandline log`: the logs on a stopped broker's disk, and whether they are intact.

Source: docs/reference/cli.md."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.options import AsJson
from strandline.cli.output import Table, ids, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.cli.server.stopped_broker import LogDirectory, StoppedBroker
    from strandline.storage.log.segment import Segment
    from strandline.storage.recovery.survey import LogSurvey, SurveyedSegment
    from strandline.storage.recovery.verification import Finding, Verified
    from strandline.storage.state_journal import GroupState

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

app = typer.Typer(help="Inspect the logs of a stopped broker.", no_args_is_help=True)

Directory = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="A broker's data directory, or the directory of one of its logs."
    ),
]


@app.command()
def inspect(
    directory: Directory,
    batches: Annotated[
        bool, typer.Option("--batches", help="List every batch and check its checksum.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what the logs in a directory hold. The broker must be stopped; changes nothing."""
    from strandline.base.errors import StorageError
    from strandline.cli.server.stopped_broker import open_stopped
    from strandline.storage.recovery.survey import survey_log
    from strandline.storage.recovery.verification import verify_journal

    described: list[dict[str, Json]] = []
    with open_stopped(str(directory)) as broker:
        states, _ = (
            ({}, []) if broker.journal is None else verify_journal(broker.disk, broker.journal)
        )
        for log in broker.logs:
            state = None if states is None else states.get(log.group)
            try:
                survey = survey_log(broker.disk, log.path)
            except StorageError as error:
                described.append({"log": log.name, "group": log.group, "error": str(error)})
            else:
                described.append(_describe(log, survey, state, with_batches=batches))

    def people() -> None:
        for one in described:
            _describe_for_people(one)

    show({"logs": described}, as_json=as_json, people=people)


@app.command()
def verify(directory: Directory, as_json: AsJson = False) -> None:
    """Read every batch of the logs in a directory and report damage.

    The broker must be stopped; changes nothing. `damage`: durable data has changed, exit code 1.
    `torn`: a tail that was never durable; the next start cuts it. `stale`: a file beside the log
    that the next start rebuilds."""
    from strandline.base.errors import OperatorError
    from strandline.cli.server.stopped_broker import open_stopped
    from strandline.storage.recovery.verification import FindingKind

    with open_stopped(str(directory)) as broker:
        verified, findings = _verify(broker)
    damage_count = sum(1 for one in findings if one.kind is FindingKind.DAMAGE)
    value: Json = {
        "ok": not damage_count,
        "logs": [
            {"log": name, "batches": one.batch_count, "bytes": one.size_bytes}
            for name, one in verified
        ],
        "findings": [_finding(one) for one in findings],
    }

    def people() -> None:
        for one in findings:
            print_line(_finding_line(one))
        batch_count = sum(one.batch_count for _, one in verified)
        size_bytes = sum(one.size_bytes for _, one in verified)
        print_line(f"{len(verified)} logs, {batch_count} batches, {size_bytes} bytes read")

    show(value, as_json=as_json, people=people)
    if damage_count:
        raise OperatorError(f"{directory}: {damage_count} of the findings are damage")


def _verify(broker: "StoppedBroker") -> "tuple[list[tuple[str, Verified]], list[Finding]]":
    """([(log, what was read of it)], everything that is not as it must be)."""
    from strandline.storage.recovery.verification import verify_journal, verify_log, verify_state

    journal = broker.journal
    states, findings = (None, []) if journal is None else verify_journal(broker.disk, journal)
    result = []
    for log in broker.logs:
        verified = verify_log(broker.disk, log.path)
        result.append((log.name, verified))
        findings += verified.findings
        if journal is not None and states is not None and log.group >= 0:
            state = states.get(log.group)
            findings += verify_state(journal, log.group, state, last_epoch=verified.last_epoch)
    return result, findings


def _finding(one: "Finding") -> Json:
    return {
        "kind": str(one.kind),
        "file": one.path,
        "position": one.position,
        "offset": one.offset if one.offset >= 0 else None,
        "end_offset": one.end_offset if one.end_offset >= 0 else None,
        "reason": one.reason,
    }


def _finding_line(one: "Finding") -> str:
    if one.offset < 0:
        span = ""
    elif one.end_offset < 0:
        span = f", offsets from {one.offset}"
    else:
        span = f", offsets {one.offset} to {max(one.offset, one.end_offset - 1)}"
    return f"{one.kind}: {one.path} at byte {one.position}{span}: {one.reason}"


# ---- what a log is -----------------------------------------------------------------------------


def _describe(
    log: "LogDirectory", survey: "LogSurvey", state: "GroupState | None", *, with_batches: bool
) -> dict[str, Json]:
    return {
        "log": log.name,
        "group": log.group,
        "directory": log.path,
        "start_offset": survey.history.start.base_offset,
        "end_offset": survey.end_offset,
        "deletions": [
            {"index": index, "before": before} for index, before in survey.history.deletions
        ],
        "last_index": survey.last_index,
        "flushed_index": survey.files.flushed_index,
        "epochs": [
            {"epoch": epoch, "offset": survey.history.offset_of(index)}
            for epoch, index in survey.history.epochs
        ],
        "producers": survey.producers_count,
        "state": _describe_state(state),
        "segments": [_describe_segment(one, with_batches=with_batches) for one in survey.segments],
    }


def _describe_state(state: "GroupState | None") -> Json:
    if state is None:
        return None
    base = state.configuration
    return {
        "epoch": state.epoch,
        "vote": state.vote,
        "promised": state.promised,
        "amnesiac": state.lost_state,
        "rejoined": state.rejoined,
        "joined": state.joined,
        "base": None
        if base is None
        else {
            "voters": list(base.voters),
            "old_voters": list(base.old_voters),
            "observers": list(base.observers),
            "min_insync": base.min_insync,
        },
    }


def _describe_segment(one: "SurveyedSegment", *, with_batches: bool) -> dict[str, Json]:
    from strandline.base.errors import StorageError
    from strandline.storage.recovery.survey import first_timestamp

    segment = one.segment
    described: dict[str, Json] = {
        "segment": segment.name.stem,
        "base_offset": segment.name.base_offset,
        "end_offset": segment.end_offset,
        "bytes": segment.size_bytes,
        "file_bytes": one.file_bytes,
        "sealed": one.is_sealed,
        "last_timestamp": segment.max_timestamp,
    }
    batches: list[Json] = []
    try:
        described["first_timestamp"] = first_timestamp(segment)
        if with_batches:
            described["batches"] = batches
            batches.extend(_describe_batches(segment))
    except StorageError as error:
        described["error"] = str(error)
    return described


def _describe_batches(segment: "Segment") -> "Iterator[Json]":
    from strandline.storage.recovery.survey import read_batches

    for header, is_sound, kind in read_batches(segment):
        yield {
            "position": header.position,
            "offset": header.base_offset,
            "end_offset": header.next_offset,
            "epoch": header.partition_leader_epoch,
            "records": 0 if header.is_marker else header.records_count,
            "bytes": header.size,
            "codec": CODECS[header.codec] if header.codec < len(CODECS) else str(header.codec),
            "producer": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "sequence": header.base_sequence,
            "crc_ok": is_sound,
            "marker": kind.name.lower() if kind is not None else "",
        }


# ---- for people --------------------------------------------------------------------------------


def _describe_for_people(one: dict[str, Json]) -> None:
    print_line(f"log {one['log']}  group {one['group']}")
    if "error" in one:
        print_line(f"damaged: {one['error']}")
        return
    epochs, state, segments = one["epochs"], one["state"], one["segments"]
    assert isinstance(epochs, list) and isinstance(segments, list)
    print_line(
        f"offsets {one['start_offset']} to {one['end_offset']} (exclusive)  last index "
        f"{one['last_index']}  known flushed {one['flushed_index']}  producers "
        f"{'?' if one['producers'] is None else one['producers']}"
    )
    history = " ".join(f"{row['epoch']}@{row['offset']}" for row in epochs)
    print_line(f"epochs {history or 'none'}")
    print_line(f"state {_state_line(state)}")
    heads = ("SEGMENT", "BASE", "END", "BYTES", "FIRST TIME", "LAST TIME", "SEALED")
    print_table(
        Table(
            heads=heads,
            right=frozenset(heads[1:4]),
            rows=[
                (
                    row["segment"],
                    row["base_offset"],
                    row["end_offset"],
                    row["bytes"],
                    _time(row.get("first_timestamp")),
                    _time(row["last_timestamp"]),
                    "yes" if row["sealed"] else "no",
                )
                for row in segments
            ],
        )
    )
    for row in segments:
        _batches_for_people(row)


def _batches_for_people(segment: dict[str, Json]) -> None:
    batches = segment.get("batches")
    if isinstance(batches, list) and batches:
        numbers = ("BYTE", "OFFSET", "EPOCH", "RECORDS", "BYTES", "PRODUCER")
        print_table(
            Table(
                title=f"batches of {segment['segment']}",
                heads=(*numbers, "CODEC", "CRC", "MARKER"),
                right=frozenset(numbers),
                rows=[
                    (
                        row["position"],
                        row["offset"],
                        row["epoch"],
                        row["records"],
                        row["bytes"],
                        row["producer"] if row["producer"] >= 0 else "-",
                        row["codec"],
                        "ok" if row["crc_ok"] else "WRONG",
                        row["marker"] or "-",
                    )
                    for row in batches
                ],
            )
        )
    if "error" in segment:
        print_line(f"damaged: {segment['error']}")


def _state_line(state: Json) -> str:
    if not isinstance(state, dict):
        return "not in the journal"
    base = state["base"]
    line = f"epoch {state['epoch']}  vote {state['vote']}"
    if state["amnesiac"]:
        line += "  lost its disk and has not rejoined"
    if isinstance(base, dict):
        line += f"  base voters {_list(base['voters'])} min.insync {base['min_insync']}"
        if base["observers"]:
            line += f" observers {_list(base['observers'])}"
    return line


def _list(brokers: Json) -> str:
    assert isinstance(brokers, list)
    return ids(brokers)


def _time(timestamp_ms: Json) -> str:
    if not isinstance(timestamp_ms, int) or timestamp_ms < 0:
        return "-"
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError):
        return str(timestamp_ms)
