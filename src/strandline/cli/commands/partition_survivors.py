"""`strandline partition survivors`: the logs left of a partition, and the offsets at risk.

Why:    before an operator gives up or recreates a partition, the command shows which logs are left,
        which are on missing disks, and whether something else would help. It changes nothing.
Source: decision 0026; `controller.survivors`."""

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, ids, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.client.cluster import Client
    from strandline.client.operations.survivors import ReplicaLogs
    from strandline.controller.arbitration.survivors import Survivors
    from strandline.model.ids import BrokerId
    from strandline.protocol.messages.describe_replica_logs import DescribeReplicaLogsResponse


def survivors(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0, help="The partition.")],
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show the logs left of a partition that has lost most of its voters, and the exact offsets
    at risk; changes nothing."""
    from strandline.client.operations.no_controller import why_no_controller
    from strandline.client.operations.survivors import ask_replica_logs
    from strandline.controller.arbitration.survivors import GroupStatus

    with open_client(bootstrap, timeout) as client:
        found = ask_replica_logs(client, topic, partition)
        shrinks = voters_may_leave(client, topic)
        judged = found.judge()
        without = "" if judged.standing is GroupStatus.LED else why_no_controller(client)
    lines = advice_lines(f"{topic} {partition}", found, judged, shrinks=shrinks)
    if without:
        lines.append(
            f"{without}; until then the partition gets no leader, and no loss can be declared"
        )

    def people() -> None:
        print_logs(topic, partition, found)
        for line in lines:
            print_line(line)

    show(_describe(topic, partition, found, judged, lines), as_json=as_json, people=people)


def voters_may_leave(client: "Client", topic: str) -> bool:
    """Whether the topic's voters may leave while some are lost."""
    from strandline.client.operations.broker_configs import VOTERS_SHRINK, is_on
    from strandline.client.operations.configs import describe_configs

    return is_on(VOTERS_SHRINK, describe_configs(client, [topic], [VOTERS_SHRINK])[topic])


def advice_lines(
    which: str, found: "ReplicaLogs", judged: "Survivors", *, shrinks: bool
) -> list[str]:
    """Lines for the operator: what the logs mean, and what to do. `which`: the topic and the
    partition as typed."""
    from strandline.controller.arbitration.survivors import GroupStatus

    match judged.standing:
        case GroupStatus.LED:
            return [
                (
                    "the replicas that answer report a leader: nothing is lost while it lives; "
                    "ask again after an election timeout"
                )
            ]
        case GroupStatus.ELECTABLE:
            return electable_advice(which, shrinks=shrinks)
        case GroupStatus.WHOLE:
            text = "the replicas that answer hold every acknowledged record: nothing is lost, and "
            if shrinks:
                return [text + "the controller appoints one of them"]
            return [f"{text}they continue after: {_let_voters_leave(which)}"]
        case GroupStatus.NO_LOG:
            lines = [
                "no replica that answers has a usable log: what the other disks hold is unknown"
            ]
        case GroupStatus.SHORT:
            lines = _range_lines(found, judged)
    lives = [one for one in judged.missing if one in found.heard]
    if lives:
        lines.append(
            f"{_brokers(lives)} reachable from other brokers: ask again when its log is open"
        )
    if found.needs_all:
        return [*lines, *_declared_advice(which, judged)]
    lines.append(
        f"nothing is at risk once {judged.wanted} of {_ids(judged.missing)} "
        f"{'returns' if judged.wanted == 1 else 'return'} with "
        f"{'its' if judged.wanted == 1 else 'their'} disks intact"
    )
    return lines


def electable_advice(which: str, *, shrinks: bool) -> list[str]:
    """Lines for the operator, for a majority of voters that answers."""
    from strandline.cli.output import program

    text = "if there is no leader for long, the voters do not reach each other: "
    text += f"`{program()} zone status` names the link: repair it"
    text += (
        "; meanwhile the controller appoints a leader on one side, if that side holds every record"
        if shrinks
        else f", or let one side continue: {_let_voters_leave(which)}"
    )
    return ["a majority of the voters answers and elects a leader: nothing is lost", text]


def _let_voters_leave(which: str) -> str:
    """The command that lets voters leave."""
    from strandline.cli.output import program
    from strandline.client.operations.broker_configs import VOTERS_SHRINK

    return f"{program()} topic alter {which.partition(' ')[0]} -c {VOTERS_SHRINK}=true"


def _declared_advice(which: str, judged: "Survivors") -> list[str]:
    """Lines for the operator: why there is no leader although a loss was declared."""
    from strandline.cli.output import program

    again = f"{program()} partition declare-lost {which}"
    if judged.missing:
        return [
            (
                "a loss was declared, but no leader can be appointed without "
                f"{_ids(judged.missing)}: bring {'it' if len(judged.missing) == 1 else 'them'} "
                f"back, or declare the loss again: {again}"
            )
        ]
    return [
        (
            "a loss was declared, but no leader is appointed yet: if this lasts, the logs have "
            f"changed: declare the loss again: {again}"
        )
    ]


def _range_lines(found: "ReplicaLogs", judged: "Survivors") -> list[str]:
    """Lines for the operator: which offsets are committed, and which are at risk."""
    committed, end, best = judged.committed, judged.end, judged.best
    lines = []
    if best in found.observers:
        lines.append(f"the best log left is on broker {best}, an observer")
    lines.append(f"below offset {committed}: on broker {best}, and committed")
    if committed < end:
        lines.append(
            f"offsets {committed} to {end - 1}: AT RISK: on broker {best}; the lost replicas "
            "may have acknowledged these records, or others at these offsets"
        )
    lines.append(
        f"offset {end} and above: AT RISK: on no replica that answers; whether and how much "
        "was acknowledged there is unknown"
    )
    return lines


def _brokers(some: "list[BrokerId]") -> str:
    return f"broker {some[0]} is" if len(some) == 1 else f"brokers {ids(some)} are"


def _ids(some: "tuple[BrokerId, ...]") -> str:
    return f"{'broker' if len(some) == 1 else 'brokers'} {ids(some)}"


def _state(found: "ReplicaLogs", broker: "BrokerId") -> str:
    from strandline.protocol.errors import Error

    one = found.answers.get(broker)
    if one is None:
        return "silent here, heard by others" if broker in found.heard else "silent"
    if one.error_code == Error.KAFKA_STORAGE_ERROR:
        return "its log cannot be used"
    if one.error_code:
        return "has no log of it"
    return "has lost its log, and not rejoined" if one.has_lost else "answers"


def _placed_role(found: "ReplicaLogs", broker: "BrokerId") -> str:
    """The role that placement gives the replica on this broker."""
    return "observer" if broker in found.observers else "voter"


def _present_role(found: "ReplicaLogs", broker: "BrokerId") -> str:
    """The placed role, with a note if the replica votes otherwise now."""
    role, votes = _placed_role(found, broker), found.may_vote(broker)
    if votes == (role == "voter"):
        return role
    return f"{role}, votes now" if votes else f"{role}, does not vote now"


def _known(one: "DescribeReplicaLogsResponse | None") -> dict[str, int | None]:
    """Fields of a log from an answer; None without one."""
    if one is None or one.error_code:
        return dict.fromkeys(("start", "committed", "end", "last_epoch", "epoch"))
    return {
        "start": one.log_start_offset,
        "committed": one.committed_offset,
        "end": one.log_end_offset,
        "last_epoch": one.last_epoch,
        "epoch": one.epoch,
    }


def print_logs(topic: str, partition: int, found: "ReplicaLogs") -> None:
    """Print a table of the brokers that should have the log."""
    heads = ("BROKER", "ROLE", "STATE", "START", "COMMITTED BELOW", "END", "LAST EPOCH", "EPOCH")
    rows = []
    for broker in found.hosts:
        known = _known(found.answers.get(broker))
        cells = ("-" if one is None else one for one in known.values())
        rows.append((broker, _present_role(found, broker), _state(found, broker), *cells))
    right = frozenset((heads[0], *heads[3:]))
    print_table(Table(title=f"{topic}-{partition}:", heads=heads, rows=rows, right=right))


def _describe(
    topic: str, partition: int, found: "ReplicaLogs", judged: "Survivors", lines: list[str]
) -> Json:
    from strandline.controller.arbitration.survivors import GroupStatus

    is_at_risk = judged.standing in (GroupStatus.SHORT, GroupStatus.NO_LOG)
    return {
        "topic": topic,
        "partition": partition,
        "possible_voters": [list(one) for one in found.possible],
        "replicas": [
            {
                "broker": broker,
                "role": _placed_role(found, broker),
                "votes": found.may_vote(broker),
                "state": _state(found, broker),
                **_known(found.answers.get(broker)),
            }
            for broker in found.hosts
        ],
        "standing": judged.standing.value,
        "best": judged.best,
        "at_risk_from": judged.committed if is_at_risk else None,
        "on_nobody_from": judged.end if is_at_risk else None,
        "missing": list(judged.missing),
        "wanted_back": judged.wanted,
        "text": lines,
    }
