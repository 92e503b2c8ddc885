"""A client as the table sees it: its cells, and what it needs on this machine."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.clusters import Cluster

from clients.observer import Observer

CELLS = ("produce", "consume", "group", "admin")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client is checked. `directory` is for state; `prefix` begins its topics' names;
    `environment`: what its program needs to come in."""

    cluster: Cluster
    observer: Observer
    directory: Path
    prefix: str
    environment: Mapping[str, str] = field(default_factory=dict)


Cell = Callable[[Place], None]
"""Checks one thing; raises CellError."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a client does where brokers ask for a proof (`clients.access`).

    `refusals`: {attempt: what its program prints about the error, as a regular expression};
    `renews`: it logs in again on the connection that it has (KIP-368), not by another one;
    `not_tried`: {cell or attempt: why}."""

    argv: "Argv"
    refusals: Mapping[str, str]
    renews: bool
    is_librdkafka: bool = False
    not_tried: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Client:
    """One row. `needs`: {command on the path: how to install it}. `prepare` fetches and builds what
    the cells need, at first use; `not_tried`: {cell: why}."""

    name: str
    version: str
    tried: str
    cells: Mapping[str, Cell]
    needs: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], object] | None = None
    not_tried: Mapping[str, str] = field(default_factory=dict)
    downloads: bool = False
    access: Access | None = None

    def lacks(self) -> str:
        """Why it can't run here, in one line; empty if it can."""
        missing = [f"`{how}`" for what, how in self.needs.items() if not shutil.which(what)]
        return f"needs {', '.join(missing)}" if missing else ""


Argv = Callable[[], Sequence[str]]
"""The command line of a client's program, ready to run."""
