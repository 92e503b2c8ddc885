"""`make fuzz SECONDS=60`: rounds over all targets until the time is up.

How:    each input is well-formed and then damaged; a seed gives the same inputs again. A finding
        ends the run: the input is written to `fuzz/corpus/`, where tests/fuzz reads it from then
        on. Exit code 1 for a finding."""

import argparse
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from random import Random

from bench import clusters

from fuzz.broker import BrokerTarget
from fuzz.hostile.cluster import secure_broker
from fuzz.hostile.target import HostileTarget
from fuzz.mutations import damaged
from fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
KEPT_LOG = Path(tempfile.gettempdir()) / "fuzz-broker.log"
ROUND = 200
BROKER, HOSTILE = "broker", "hostile"


def main() -> int:
    """Exit code: 0 without a finding."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--seconds", type=float, default=60.0, help="of all targets together")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--target", choices=[*TARGETS, BROKER, HOSTILE], action="append", default=[]
    )
    arguments = parser.parse_args()
    chosen = arguments.target or [*TARGETS, BROKER, HOSTILE]
    sys.stdout.write(f"seed {arguments.seed}, {arguments.seconds:g} s: {', '.join(chosen)}\n")
    for name in chosen:
        seconds = arguments.seconds / len(chosen)
        random = Random(f"{arguments.seed} {name}")
        try:
            count = RUNS[name](random, seconds) if name in RUNS else _run(name, random, seconds)
        except FindingError as finding:
            sys.stdout.write(f"{name}: {finding}\n")
            return 1
        sys.stdout.write(f"{name}: {count} inputs, nothing found\n")
    return 0


class FindingError(Exception):
    """An input that was neither read nor refused as it should be."""


def _run(name: str, random: Random, seconds: float) -> int:
    read, draw = TARGETS[name]
    deadline = time.monotonic() + seconds
    count = 0
    other = draw(random)
    while time.monotonic() < deadline:
        for _ in range(ROUND):
            whole = draw(random)
            data = damaged(whole, random, other)
            other = whole
            try:
                read(data)
            except Exception as error:
                path = CORPUS / f"{name}-{sha256(data).hexdigest()[:12]}.bin"
                path.write_bytes(data)
                raise FindingError(f"{type(error).__name__}: {error}; see {path}") from error
        count += ROUND
    return count


def _run_broker(random: Random, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    count = 0
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-") as directory,
        clusters.strandline(Path(directory), regions="here=1") as cluster,
    ):
        target = BrokerTarget(cluster)
        while time.monotonic() < deadline:
            try:
                target.round(random)
            except AssertionError as error:
                raise FindingError(f"{error}; run again with the seed") from error
            count += 1
    return count


def _run_hostile(random: Random, seconds: float) -> int:
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-") as directory,
        secure_broker(Path(directory)) as broker,
    ):
        target = HostileTarget(broker)
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline:
                target.round(random)
            sys.stdout.write(f"hostile: {target.finish()}\n")
        except AssertionError as error:
            KEPT_LOG.write_text(broker.log())
            raise FindingError(
                f"{error}; run again with the seed; the broker's log is {KEPT_LOG}"
            ) from error
    return target.counts.total()


RUNS = {BROKER: _run_broker, HOSTILE: _run_hostile}
"""{target: what runs it}, for those with a broker of their own."""


if __name__ == "__main__":
    sys.exit(main())
