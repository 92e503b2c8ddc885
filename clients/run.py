"""`make clients`: checks every client against three brokers and prints the table.

How:    `--only NAME...` for some; `--here` for those that need no download. Exit code 1 if a
        cell is red. `--write FILE` also writes the table as markdown."""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import clusters

from clients.catalogue import CLIENTS
from clients.client import CELLS, Client, Place
from clients.observer import Observer
from clients.records import CellError
from clients.table import OK, Row, as_markdown, as_text

REGIONS = "east=1,west=1,south=1"
LINE_MAX = 200


def main() -> int:
    """Exit code: 0 without a red cell."""
    parser = argparse.ArgumentParser(prog="make clients")
    names = {client.name: client for client in CLIENTS}
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", default=[])
    parser.add_argument("--here", action="store_true", help="only clients that need no download")
    parser.add_argument("--write", type=Path, help="the table as markdown")
    arguments = parser.parse_args()
    chosen = [names[name] for name in arguments.only] or list(CLIENTS)
    if arguments.here:
        chosen = [client for client in chosen if not client.downloads]
    with (
        tempfile.TemporaryDirectory(prefix="clients-") as directory,
        clusters.strandline(Path(directory) / "cluster", regions=REGIONS) as cluster,
    ):
        rows = check_all(chosen, cluster, Path(directory))
    sys.stdout.write(as_text(rows))
    if arguments.write:
        arguments.write.write_text(as_markdown(rows))
    return 1 if any(row.is_red for row in rows) else 0


def check_all(chosen: Sequence[Client], cluster: clusters.Cluster, directory: Path) -> list[Row]:
    """One row for each client."""
    return [check(client, cluster, directory) for client in chosen]


def check(client: Client, cluster: clusters.Cluster, directory: Path) -> Row:
    """Check all cells of one client."""
    _say(f"{client.name} {client.version}: ")
    if lacking := client.lacks():
        _say("not here\n")
        return Row(client, dict.fromkeys(CELLS, f"not here: {lacking}"))
    try:
        if client.prepare:
            client.prepare()
    except subprocess.CalledProcessError as error:
        _say("not here\n")
        return Row(client, dict.fromkeys(CELLS, f"not here: {_why(error)}"))
    observer = Observer(cluster.bootstrap)
    prefix = re.sub(r"[^a-z0-9]+", "-", client.name.lower()).strip("-")
    answers: dict[str, str] = {}
    for cell in CELLS:
        if cell not in client.cells:
            answers[cell] = f"not tried: {client.not_tried[cell]}"
        else:
            place = Place(cluster, observer, directory, f"{prefix}-{cell}")
            answers[cell] = _answer(client, cell, place)
        _say(f"{cell} {answers[cell].split(':')[0]}  ")
    _say("\n")
    return Row(client, answers)


def _answer(client: Client, cell: str, place: Place) -> str:
    try:
        client.cells[cell](place)
    except CellError as error:
        return f"FAIL: {error}"
    except Exception as error:
        return f"FAIL: {type(error).__name__} {str(error).splitlines()[:1]}"[:LINE_MAX]
    return OK


def _why(error: subprocess.CalledProcessError) -> str:
    lines = (error.stderr or error.stdout or "").strip().splitlines() or ["no word"]
    return f"`{' '.join(map(str, error.cmd[:2]))}`: {lines[-1]}"[:LINE_MAX]


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
