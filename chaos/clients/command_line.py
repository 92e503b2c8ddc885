"""The arguments of every client program, and how SIGTERM ends it."""

import argparse
import signal
from collections.abc import Sequence
from pathlib import Path

from chaos.hosts import BOOTSTRAP


class Stop:
    """`is_asked` once SIGTERM came."""

    def __init__(self) -> None:
        self.is_asked = False
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self.is_asked = True


class Arguments(argparse.Namespace):
    """`topics`: {name: number of partitions}; `client_config`: how to log in, None in the clear;
    `cores`: brokers of each machine, 0 where a machine has one broker without a supervisor."""

    name: str
    ledger: Path
    topics: dict[str, int]
    bootstrap: str
    group: str
    acks: str
    client_config: Path | None
    per_second: int
    cores: int

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """Every partition there is."""
        return [(name, number) for name, count in self.topics.items() for number in range(count)]

    @property
    def servers(self) -> list[str]:
        """The same as `bootstrap`, as a list."""
        return self.bootstrap.split(",")


def parse_arguments(told: Sequence[str] | None = None) -> Arguments:
    """What the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--topics", type=_topics, required=True)
    parser.add_argument("--bootstrap", default=BOOTSTRAP)
    parser.add_argument("--client-config", type=Path)
    parser.add_argument("--group", default="")
    parser.add_argument("--acks", choices=("1", "all"), default="all")
    parser.add_argument("--per-second", type=int, default=0)
    parser.add_argument("--cores", type=int, default=0)
    return parser.parse_args(told, Arguments())


def _topics(text: str) -> dict[str, int]:
    pairs = (part.split("=") for part in text.split(","))
    return {name: int(count) for name, count in pairs}
