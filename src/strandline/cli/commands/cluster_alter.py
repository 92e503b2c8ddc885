"""`strandline cluster alter`: keys that apply to every broker.

Source: docs/reference/cli.md; docs/reference/topic-config.md."""

from typing import Annotated

import typer

from strandline.cli.options import (
    DEFAULT_TIMEOUT_S,
    AsJson,
    Bootstrap,
    Timeout,
    Unset,
    open_client,
    parse_changes,
)
from strandline.cli.output import print_line, show


def alter(
    config: Annotated[
        list[str] | None,
        typer.Option("--config", "-c", metavar="KEY=VALUE", help="A key; may be repeated."),
    ] = None,
    unset: Unset = None,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Change keys that apply to every broker."""
    from strandline.base.errors import OperatorError
    from strandline.cli.text.live_cluster import DEFAULT_REPLICAS, MIN_INSYNC, topic_defaults
    from strandline.cli.text.policy_notes import more_than_voters, notes_on_changes, tell_notes
    from strandline.client.operations.configs import alter_cluster_configs

    changes = parse_changes(config, unset)
    if not changes:
        raise OperatorError("nothing to change: give --config or --unset")
    with open_client(bootstrap, timeout) as client:
        alter_cluster_configs(client, changes)
        notes = notes_on_changes(client, changes)
        if changes.keys() & {MIN_INSYNC, DEFAULT_REPLICAS}:
            defaults = topic_defaults(client)
            least, replicas = defaults.min_insync_replicas, defaults.replicas
            notes += more_than_voters("topics that say nothing", least, replicas)

    def people() -> None:
        print_line("cluster changed")
        tell_notes(notes)

    show({"altered": list(changes), "notes": notes}, as_json=as_json, people=people)
