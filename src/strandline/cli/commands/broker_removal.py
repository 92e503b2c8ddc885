"""`strandline broker decommission`, `cancel` and `unregister`: brokers that leave for good.

How:    one broker, or all brokers of a machine: then all of them, or none if one is refused. Each
        command may be repeated: what is done already stays done.
Source: docs/reference/cli.md; decisions 0011 and 0071."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.base.json_value import Json
from strandline.cli.commands import broker_dry_run
from strandline.cli.options import (
    DEFAULT_TIMEOUT_S,
    AsJson,
    Bootstrap,
    DryRun,
    Host,
    OptionalId,
    Timeout,
    named_brokers,
    open_client,
)
from strandline.cli.output import ids, print_line, show

if TYPE_CHECKING:
    from strandline.model.ids import BrokerId


def decommission(
    broker: OptionalId = None,
    host: Host = "",
    dry_run: DryRun = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Move everything off a broker, or off all brokers of a machine. Refused if the other brokers
    have no room for it. With --dry-run: show what would move, and what topics survive
    afterwards."""
    from strandline.client.operations.broker_removal import votes_of
    from strandline.client.operations.configs import alter_broker_configs
    from strandline.config.broker_life import DECOMMISSION

    with open_client(bootstrap, timeout) as client:
        named = named_brokers(client, broker, host=host)
        if dry_run:
            broker_dry_run.show_decommission(client, named, host=host, as_json=as_json)
            return
        alter_broker_configs(client, named, {DECOMMISSION: "true"})
        votes = votes_of(client, named)

    def people() -> None:
        print_line(f"{_subject(named)}: {_whose(named)} replicas move away; see {_STATUS}")
        for line in votes.values():
            print_line(line)

    told: dict[str, Json] = {**_named(named, host), "decommission": True, "votes": bool(votes)}
    show(told, as_json=as_json, people=people)


def cancel(
    broker: OptionalId = None,
    host: Host = "",
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Cancel a decommission. Replicas that have moved away move back, and preferred leaders are as
    before."""
    from strandline.client.operations.configs import alter_broker_configs
    from strandline.config.broker_life import DECOMMISSION

    with open_client(bootstrap, timeout) as client:
        named = named_brokers(client, broker, host=host)
        alter_broker_configs(client, named, {DECOMMISSION: None})
    stays = "stays" if len(named) == 1 else "stay"
    line = (
        f"{_subject(named)} {stays}, and what moved away returns; see `strandline cluster balance`"
    )
    told: dict[str, Json] = {**_named(named, host), "decommission": False}
    show(told, as_json=as_json, people=lambda: print_line(line))


def unregister(
    broker: OptionalId = None,
    host: Host = "",
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Remove an empty, stopped broker from the cluster, or all brokers of an empty, stopped
    machine."""
    from strandline.client.operations.broker_removal import (
        require_unregistrable,
        unregister_broker,
    )

    with open_client(bootstrap, timeout) as client:
        named = named_brokers(client, broker, host=host)
        if host:
            require_unregistrable(client, host, named)
        for one in named:
            unregister_broker(client, one)
    is_are = "is" if len(named) == 1 else "are"
    line = f"{_subject(named)} {is_are} removed from the cluster"
    told: dict[str, Json] = {**_named(named, host), "registered": False}
    show(told, as_json=as_json, people=lambda: print_line(line))


_STATUS = "`strandline broker status`"


def _named(brokers: "Sequence[BrokerId]", host: str) -> dict[str, Json]:
    """What was named on the command line, as JSON."""
    return {"host": host, "brokers": list(brokers)} if host else {"broker": brokers[0]}


def _subject(brokers: "Sequence[BrokerId]") -> str:
    return f"{'broker' if len(brokers) == 1 else 'brokers'} {ids(brokers)}"


def _whose(brokers: "Sequence[BrokerId]") -> str:
    return "its" if len(brokers) == 1 else "their"
