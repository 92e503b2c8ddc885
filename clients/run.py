"""`make clients`: checks every client against three brokers and prints the table.

How:    `--only NAME...` for some; `--here` for those that need no download. Exit code 1 if a
        cell is red. `--write FILE` also writes the table as markdown. `--access` checks the second
        matrix in place of the first: listeners that ask for a proof."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench import clusters

from clients.access.cells import ACCESS_CELLS
from clients.access.cluster import access_cluster
from clients.access.table import check_access
from clients.catalogue import CLIENTS
from clients.client import CELLS, Client, Place
from clients.observer import Observer
from clients.table import Row, answer, as_markdown, as_text, say, slug, why_not_here

REGIONS = "east=1,west=1,south=1"


def main() -> int:
    """Exit code: 0 without a red cell."""
    parser = argparse.ArgumentParser(prog="make clients")
    names = {client.name: client for client in CLIENTS}
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", default=[])
    parser.add_argument("--here", action="store_true", help="only clients that need no download")
    parser.add_argument("--write", type=Path, help="the table as markdown")
    parser.add_argument(
        "--access", action="store_true", help="at listeners that ask for a proof (clients.access)"
    )
    arguments = parser.parse_args()
    chosen = [names[name] for name in arguments.only] or list(CLIENTS)
    if arguments.here:
        chosen = [client for client in chosen if not client.downloads]
    if arguments.access:
        return _access(chosen, arguments.write)
    with (
        tempfile.TemporaryDirectory(prefix="clients-") as directory,
        clusters.strandline(Path(directory) / "cluster", regions=REGIONS) as cluster,
    ):
        rows = check_all(chosen, cluster, Path(directory))
    sys.stdout.write(as_text(rows))
    if arguments.write:
        arguments.write.write_text(as_markdown(rows))
    return 1 if any(row.is_red for row in rows) else 0


def _access(chosen: Sequence[Client], write: Path | None) -> int:
    """The second matrix: those of the clients that have a program for it."""
    with (
        tempfile.TemporaryDirectory(prefix="clients-") as directory,
        access_cluster(Path(directory) / "cluster") as cluster,
    ):
        known = [client for client in chosen if client.access]
        rows = [check_access(client, cluster, Path(directory)) for client in known]
    sys.stdout.write(as_text(rows, ACCESS_CELLS))
    if write:
        write.write_text(as_markdown(rows, ACCESS_CELLS))
    return 1 if any(row.is_red for row in rows) else 0


def check_all(chosen: Sequence[Client], cluster: clusters.Cluster, directory: Path) -> list[Row]:
    """One row for each client."""
    return [check(client, cluster, directory) for client in chosen]


def check(client: Client, cluster: clusters.Cluster, directory: Path) -> Row:
    """Check all cells of one client."""
    say(f"{client.name} {client.version}: ")
    if lacking := why_not_here(client):
        say("not here\n")
        return Row(client, dict.fromkeys(CELLS, lacking))
    observer = Observer(cluster.bootstrap)
    answers: dict[str, str] = {}
    for cell in CELLS:
        if cell not in client.cells:
            answers[cell] = f"not tried: {client.not_tried[cell]}"
        else:
            place = Place(cluster, observer, directory, f"{slug(client.name)}-{cell}")
            answers[cell] = answer(partial(client.cells[cell], place))
        say(f"{cell} {answers[cell].split(':')[0]}  ")
    say("\n")
    return Row(client, answers)


if __name__ == "__main__":
    sys.exit(main())
