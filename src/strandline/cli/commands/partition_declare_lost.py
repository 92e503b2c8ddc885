"""`strandline partition declare-lost`: continues without voters that are gone for good.

Why:    it gives up records for ever, so the command first shows the logs left and the exact offsets
        at risk, and asks for the topic's name. The controller refuses if nothing need be lost.
Source: decision 0027; docs/operating/outages.md."""

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.commands.partition_survivors import (
    advice_lines,
    electable_advice,
    print_logs,
    voters_may_leave,
)
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import ids, print_line, show
from strandline.cli.text.loss_confirmation import (
    NOTHING_DONE,
    NOTHING_YET,
    How,
    confirm,
    declaring_user,
    estimate_line,
    not_now,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strandline.client.cluster import Client
    from strandline.client.operations.survivors import ReplicaLogs
    from strandline.model.ids import BrokerId
    from strandline.protocol.messages.declare_lost import DeclareLostResponse


def declare_lost(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC [PARTITION] | TOPIC...]",
            help="A topic and one of its partitions; or topics: all their partitions without a "
            "leader.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All partitions without a leader.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the offsets at risk, and do nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    from_bucket: Annotated[
        list[str] | None,
        typer.Option(
            "--from-bucket",
            metavar="NAME",
            help="Give up all logs, and begin with what this bucket of the topic has; may be "
            "repeated; all: every one that has records.",
        ),
    ] = None,
    accept_missing: Annotated[
        bool,
        typer.Option(
            "--accept-missing",
            help="With --from-bucket: objects may be missing; records before them are lost.",
        ),
    ] = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Give up replicas on brokers that are gone for good, when too few voters are left: the best
    log left becomes the leader's. Stop the processes of those brokers first."""
    from strandline.base.errors import OperatorError
    from strandline.cli.commands.partition_declare_many import declare_many
    from strandline.cli.commands.partition_from_buckets import FromBuckets, recover_from_buckets

    topics = names or []
    if everything == bool(topics):
        raise OperatorError("name topics, or a topic and a partition, or give --all")
    if accept_missing and not from_bucket:
        raise OperatorError("--accept-missing goes with --from-bucket")
    how = How(is_sure=yes, is_dry=dry_run, as_json=as_json)
    with open_client(bootstrap, timeout) as client:
        if from_bucket:
            buckets = FromBuckets(tuple(from_bucket), accept_missing)
            recover_from_buckets(client, _logs(client, topics), buckets, how)
        elif _is_one(topics):
            _declare_one(client, topics[0], int(topics[1]), how)
        else:
            declare_many(client, None if everything else sorted(set(topics)), how)


def _is_one(topics: list[str]) -> bool:
    """Whether these are a topic and a partition."""
    return len(topics) == len(("topic", "partition")) and topics[1].isdecimal()


def _logs(client: "Client", topics: list[str]) -> "Mapping[tuple[str, int], ReplicaLogs]":
    """{partition: its logs}, of one partition, or of those without a leader: of these topics, or of
    all if there are none."""
    from strandline.client.operations.survivors import ask_leaderless_logs, ask_replica_logs

    if _is_one(topics):
        place = topics[0], int(topics[1])
        return {place: ask_replica_logs(client, *place)}
    return ask_leaderless_logs(client, sorted(set(topics)) or None)


def _declare_one(client: "Client", topic: str, partition: int, how: How) -> None:
    """One partition, with all that is known of its logs."""
    from strandline.cli.text.bucket_ends import bucket_lines, buckets_json
    from strandline.client.operations.exports import describe_exports
    from strandline.client.operations.losses import declare_lost as declare
    from strandline.client.operations.survivors import ask_replica_logs

    found = ask_replica_logs(client, topic, partition)
    grant = max((one.grant for one in found.answers.values()), default=0)
    lost = _brokers_to_give_up(client, topic, partition, found, grant=grant)
    forecast, without = _forecast(client, topic, partition, found, lost, how)
    lines = _loss_lines(lost, found, forecast)
    buckets = describe_exports(client, [(topic, partition)]).get((topic, partition), [])
    lines += bucket_lines(buckets, forecast.committed_offset, forecast.log_end_offset)
    if without:
        lines.append(estimate_line(without))
    if not (how.as_json and (how.is_sure or how.is_dry)):
        with contextlib.redirect_stdout(sys.stderr if how.as_json else sys.stdout):
            _show_logs(topic, partition, found, lines)
    done = forecast
    if not how.is_dry:
        if not how.is_sure:
            confirm(topic)
        done = declare(
            client, topic, partition, brokers=lost, forecast=forecast, by=declaring_user()
        )
    told: dict[str, Json] = {
        "topic": topic,
        "partition": partition,
        "declared": not how.is_dry,
        "lost": [int(one) for one in lost],
        "leader": done.leader_id,
        "grant": done.grant,
        "at_risk_from": done.committed_offset,
        "on_nobody_from": done.log_end_offset,
        "estimated": bool(without),
        "buckets": buckets_json(buckets),
        "text": [*lines],
    }
    after = (
        f"{topic}-{partition} continues from offset {done.log_end_offset} on broker "
        f"{done.leader_id}"
    )
    if how.is_dry:
        after = NOTHING_YET if without else NOTHING_DONE
    show(told, as_json=how.as_json, people=lambda: print_line(after))


def _forecast(
    client: "Client",
    topic: str,
    partition: int,
    found: "ReplicaLogs",
    lost: "list[BrokerId]",
    how: How,
) -> "tuple[DeclareLostResponse, str]":
    """The controller's forecast, and an empty text. For a dry run without a controller: an estimate
    by the logs that answer, and why there is no controller. Raises OperatorError or ApiError with
    what is to be done otherwise."""
    from strandline.base.errors import OperatorError, StrandlineError
    from strandline.client.operations.losses import (
        estimate_loss,
        forecast_loss,
        is_without_controller,
    )

    grant = max((one.grant for one in found.answers.values()), default=0)
    try:
        return forecast_loss(client, topic, partition, brokers=lost, grant=grant), ""
    except StrandlineError as error:
        if not is_without_controller(error):
            raise
        if not how.is_dry:
            raise not_now(error) from error
        without = str(error)
    estimate = estimate_loss(found)
    if estimate is None:
        advice = advice_lines(
            f"{topic} {partition}", found, found.judge(), shrinks=voters_may_leave(client, topic)
        )
        raise OperatorError(f"no loss to declare: {'; '.join(advice)} ({without})")
    return estimate, without


def _brokers_to_give_up(
    client: "Client", topic: str, partition: int, found: "ReplicaLogs", *, grant: int
) -> "list[BrokerId]":
    """The brokers of the log that neither answer nor are heard by others; may be empty if others
    that answer have lost their logs, which are given up then. Raises OperatorError if no broker
    answers, or if there is nothing to give up."""
    from strandline.base.errors import OperatorError
    from strandline.controller.arbitration.survivors import GroupStatus

    silent = found.silent
    if not found.answers:
        raise OperatorError(
            f"none of brokers {ids(found.hosts)} answers: no log is left to continue with"
        )
    if not silent and not any(one.has_lost for one in found.answers.values()):
        told = ["every broker with a log answers or is reachable: there is nothing to give up"]
        if found.judge().standing is GroupStatus.ELECTABLE:
            told += _electable_advice(client, topic, partition, grant)
        raise OperatorError("; ".join(told))
    return silent


def _electable_advice(client: "Client", topic: str, partition: int, grant: int) -> list[str]:
    """What to do if a majority answers. Asks the controller, and raises its ApiError if that names
    the brokers that do not hear each other. Returns general advice if no controller answers, or
    one of an older release does."""
    from strandline.base.errors import ApiError
    from strandline.client.errors import ClientError
    from strandline.client.operations.losses import forecast_loss
    from strandline.protocol.errors import Error

    try:
        forecast_loss(client, topic, partition, brokers=[], grant=grant)
    except ApiError as error:
        if error.code == Error.POLICY_VIOLATION:
            raise
    except ClientError:
        pass
    return electable_advice(f"{topic} {partition}", shrinks=voters_may_leave(client, topic))


def _loss_lines(
    lost: "list[BrokerId]", found: "ReplicaLogs", forecast: "DeclareLostResponse"
) -> list[str]:
    """Lines for the operator: the brokers given up, the log that continues, the offsets at risk."""
    from strandline.model.ids import BrokerId

    committed, end = forecast.committed_offset, forecast.log_end_offset
    best = BrokerId(forecast.leader_id)
    empty = [one for one, answer in found.answers.items() if answer.has_lost]
    lines = [f"given up: brokers {ids(lost)}"] if lost else []
    if empty:
        lines.append(f"given up: the lost logs of brokers {ids(empty)}")
    note = ""
    if not found.may_vote(best):
        note = ", which does not vote now"
    if best in found.observers:
        note = ", an observer; it leads and votes until voters of the partition vote again"
    lines.append(f"continues: the log of broker {best}{note}")
    lines.append(f"below offset {committed}: kept, and committed")
    if committed < end:
        lines.append(
            f"offsets {committed} to {end - 1}: AT RISK: kept as on broker {best}; if other "
            "records were acknowledged at these offsets, those are lost"
        )
    lines.append(
        f"offset {end} and above: AT RISK: records acknowledged there are lost, and new "
        "records get these offsets"
    )
    return lines


def _show_logs(topic: str, partition: int, found: "ReplicaLogs", lines: list[str]) -> None:
    """Print the logs left, the offsets at risk, and the brokers that would save them."""
    print_logs(topic, partition, found)
    for line in lines:
        print_line(line)
    for line in _return_advice(found):
        print_line(line)
    sys.stdout.flush()


def _return_advice(found: "ReplicaLogs") -> list[str]:
    """The line that names the brokers whose return would save everything; none if an earlier
    declaration gave them up."""
    judged = found.judge()
    if found.needs_all:
        return []
    return [
        (
            f"nothing would be at risk once {judged.wanted} of {ids(judged.missing)} "
            f"{'returns' if judged.wanted == 1 else 'return'} with "
            f"{'its' if judged.wanted == 1 else 'their'} disks intact"
        )
    ]
