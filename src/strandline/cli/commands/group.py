"""`strandline group`: consumer groups, their members and lag.

Source: docs/reference/cli.md."""

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, print_error, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.client.admin import GroupView, MemberView
    from strandline.client.operations.group_list import FoundGroups

app = typer.Typer(help="List and describe consumer groups.", no_args_is_help=True)


@app.command("list")
def list_all(
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """List the groups of the cluster. Fails if a coordinator is missing, because its groups are
    missing then, too."""
    from strandline.cli.exit_codes import ERROR
    from strandline.client.operations.group_list import find_groups

    with open_client(bootstrap, timeout) as client:
        found = find_groups(client)
    groups = found.groups

    def people() -> None:
        print_table(
            Table(
                heads=("GROUP", "STATE", "TYPE", "COORDINATOR"),
                rows=[
                    (one.id, one.state or "-", one.protocol_type or "-", one.coordinator)
                    for one in groups
                ],
            )
        )

    value: Json = {
        "groups": [
            {
                "id": one.id,
                "state": one.state,
                "type": one.protocol_type,
                "coordinator": one.coordinator,
            }
            for one in groups
        ],
        "missing_partitions": [*found.missing_partitions],
    }
    show(value, as_json=as_json, people=people)
    if found.missing:
        print_error(*_incomplete(found))
        raise typer.Exit(ERROR)


def _incomplete(found: "FoundGroups") -> tuple[str, list[str]]:
    """Why the list is incomplete: one line, and one for each coordinator that is missing."""
    from strandline.cli.output import program
    from strandline.cli.text.explaining import partitions_named
    from strandline.model.ids import NO_BROKER

    missing = found.missing_partitions
    text = (
        f"the list is incomplete: the groups of {len(missing)} of {found.partition_count} "
        f"partitions of __consumer_offsets are missing; see {program()} cluster status"
    )
    return text, [
        ("no coordinator" if broker == NO_BROKER else f"broker {broker} does not answer")
        + f": groups in {partitions_named(some)}"
        for broker, some in sorted(found.missing.items())
    ]


@app.command()
def describe(
    name: Annotated[str, typer.Argument(metavar="GROUP", help="The group.")],
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show members, committed offsets and lag of a group."""
    from strandline.base.errors import OperatorError
    from strandline.client.admin import LATEST, describe_group, list_offsets

    with open_client(bootstrap, timeout) as client:
        group = describe_group(client, name)
        if group.state == "Dead" and not group.offsets:
            raise OperatorError(f"group {name} does not exist; see `strandline group list`")
        topics = sorted({topic for topic, _ in (*group.offsets, *_owners(group))})
        known = client.metadata(topics).topics if topics else {}
        ends = {
            (topic, index): end
            for topic in topics
            if topic in known and not known[topic].error_code
            for index, end in list_offsets(client, topic, LATEST).items()
        }
    show(
        _describe(group, ends),
        as_json=as_json,
        people=lambda: _describe_for_people(group, ends),
    )


def _owners(group: "GroupView") -> "dict[tuple[str, int], MemberView]":
    """{(topic, partition): the member that reads it}."""
    return {
        (topic, index): member
        for member in group.members
        for topic, indexes in member.assignment.items()
        for index in indexes
    }


def _lag(committed: int | None, end: int | None) -> int | None:
    return None if committed is None or end is None else max(end - committed, 0)


def _describe(group: "GroupView", ends: dict[tuple[str, int], int]) -> Json:
    owners = _owners(group)
    return {
        "id": group.id,
        "state": group.state,
        "protocol": group.protocol,
        "coordinator": group.coordinator,
        "members": [
            {
                "id": one.id,
                "client_id": one.client_id,
                "host": one.host,
                "partitions": {topic: list(indexes) for topic, indexes in one.assignment.items()},
            }
            for one in group.members
        ],
        "partitions": [
            {
                "topic": place[0],
                "partition": place[1],
                "committed_offset": group.offsets.get(place),
                "end_offset": ends.get(place),
                "lag": _lag(group.offsets.get(place), ends.get(place)),
                "member": owners[place].id if place in owners else None,
            }
            for place in sorted({*group.offsets, *owners})
        ],
    }


def _describe_for_people(group: "GroupView", ends: dict[tuple[str, int], int]) -> None:
    owners = _owners(group)
    lags = [_lag(committed, ends.get(place)) for place, committed in group.offsets.items()]
    print_line(
        f"group {group.id}  state {group.state}  coordinator {group.coordinator}  "
        f"members {len(group.members)}  lag {sum(lag for lag in lags if lag is not None)}"
    )

    def cell(number: int | None) -> str:
        return "-" if number is None else str(number)

    print_table(
        Table(
            heads=("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT", "HOST"),
            right=frozenset({"PARTITION", "COMMITTED", "END", "LAG"}),
            rows=[
                (
                    place[0],
                    place[1],
                    cell(group.offsets.get(place)),
                    cell(ends.get(place)),
                    cell(_lag(group.offsets.get(place), ends.get(place))),
                    owners[place].client_id if place in owners else "-",
                    owners[place].host if place in owners else "-",
                )
                for place in sorted({*group.offsets, *owners})
            ],
        )
    )
