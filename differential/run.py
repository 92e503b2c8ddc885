"""`make differential`: asks Apache Kafka and Strandline the same, and compares the answers.

How:    starts one broker of each (Kafka comes from a Maven repository and needs `java` and `mvn`),
        runs every case on both, prints each difference without a reason. Exit code 1 if there is
        one, or if the page of known differences has a row that is out of date."""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path

from bench import clusters

from differential.cases import CASES, Case
from differential.comparison import PAGE, Difference, compare, judge, read_known
from differential.peer import Peer

KAFKA_CONFIGS = ("auto.create.topics.enable=true",)
"""Kafka's default, which the script that starts it turns off."""


def main() -> int:
    """Exit code: 0 if every difference has a reason."""
    arguments = _arguments()
    with ExitStack() as stack:
        kafka, strandline = _peers(arguments, stack)
        cases = {name: case for name, case in CASES.items() if fnmatch(name, arguments.cases)}
        found = [
            difference
            for name, case in cases.items()
            for difference in run(name, case, kafka, strandline)
        ]
    known = read_known(PAGE.read_text())
    unknown, outdated = judge(found, known, is_whole=len(cases) == len(CASES))
    lines = [str(difference) for difference in unknown]
    lines += [f"{PAGE}: no difference meets `{row.pattern}`: take it out" for row in outdated]
    lines.append(
        f"{len(cases)} cases, {len(found)} differences, {len(unknown)} without a reason,"
        f" {len(outdated)} rows out of date"
    )
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if unknown or outdated else 0


def run(name: str, case: Case, kafka: Peer, strandline: Peer) -> list[Difference]:
    """Run one case on both."""
    for peer in (kafka, strandline):
        peer.begin()
        case(peer)
    return compare(name, kafka.answers, strandline.answers)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make differential", description=main.__doc__)
    parser.add_argument("--cases", default="*", help="only these, such as 'produce.*'")
    parser.add_argument("--kafka", help="a broker that runs, host:port")
    parser.add_argument("--strandline", help="a broker that runs, host:port")
    return parser.parse_args()


def _peers(arguments: argparse.Namespace, stack: ExitStack) -> tuple[Peer, Peer]:
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="differential-")))
    kafka, strandline = arguments.kafka, arguments.strandline
    if not kafka:
        if not clusters.has_kafka():
            sys.exit("Apache Kafka needs `java` and `mvn` on the path, or --kafka HOST:PORT")
        cluster = clusters.kafka(directory / "kafka", brokers=1, configs=KAFKA_CONFIGS)
        kafka = stack.enter_context(cluster).bootstrap
    if not strandline:
        cluster = clusters.strandline(directory / "strandline", regions="here=1")
        strandline = stack.enter_context(cluster).bootstrap
    return _peer("kafka", kafka), _peer("strandline", strandline)


def _peer(name: str, bootstrap: str) -> Peer:
    host, _, port = bootstrap.partition(",")[0].rpartition(":")
    return Peer(name, host, int(port))


if __name__ == "__main__":
    sys.exit(main())
