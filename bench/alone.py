"""One scenario by itself, with numbers from the command line instead of those of `bench.run`.

python -m bench.partitions --partitions 500 --idle-s 10 --dir /var/tmp"""

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.clusters import strandline

Say = Callable[..., None]
"""Tells figures: `say(step="fill", seconds=3)`."""


def run_alone(
    measure: Callable[..., None], *, description: str, regions: str, **defaults: int
) -> None:
    """Start a cluster and call `measure(cluster, say, **numbers)`; a JSON line for what it says."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for name, default in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    parser.add_argument("--dir", type=Path, help="keep the brokers' directories below this one")
    numbers = vars(parser.parse_args())
    kept = numbers.pop("dir")

    def say(**figures: object) -> None:
        print(json.dumps(figures), flush=True)

    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as work,
        strandline((kept or Path(work)) / "cluster", regions=regions) as cluster,
    ):
        measure(cluster, say, **numbers)
