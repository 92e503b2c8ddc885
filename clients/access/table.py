"""`make clients ACCESS=1`: each client where brokers ask for a proof, as a table.

How:    the rows are those of `clients.table`, with the cells of `clients.access.cells`."""

from collections.abc import Sequence
from pathlib import Path

from clients.access.cells import ACCESS_CELLS, answers_of
from clients.access.cluster import AccessCluster
from clients.client import Client
from clients.table import Row, answer, say, slug, why_not_here


def check_access(
    client: Client,
    cluster: AccessCluster,
    directory: Path,
    *,
    cells: Sequence[str] = ACCESS_CELLS,
) -> Row:
    """Check these cells of one client."""
    assert client.access is not None
    say(f"{client.name} {client.version}: ")
    if lacking := why_not_here(client):
        say("not here\n")
        return Row(client, dict.fromkeys(cells, lacking))
    checks = answers_of(cluster, client.access, slug(client.name), directory)
    answers: dict[str, str] = {}
    for cell in cells:
        if cell in checks:
            answers[cell] = answer(checks[cell])
        else:
            answers[cell] = f"not tried: {client.access.not_tried[cell]}"
        say(f"{cell} {answers[cell].split(':')[0]}  ")
    say("\n")
    return Row(client, answers)
