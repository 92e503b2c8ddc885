"""How a client proves itself on each machine that it runs on: what travels, and what is read there.

Why:    a query has one configuration and runs on many machines. A password that travels with the
        query shows where Spark shows queries; the name of a file does not.
How:    `Access` is a plain value: the name of a client's configuration file, or keys and values.
        `AccessTransport` reads it, and reads it again before a connection if one of its files has
        changed: a new password or certificate counts for new connections. A file that cannot be
        used is logged, and the last good one stays in use.
        A named file is the one at this path. Where there is none, and Spark runs the program, it is
        the file of the same name that `spark-submit --files` has brought to the machine.
Owns:   the transport: what was read last.
Source: decision 0069."""

import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.client.client_config import (
    ANONYMOUS,
    ClientConfig,
    parse_client_config,
    read_client_config,
)
from strandline.client.tls_files import Find
from strandline.client.wire.transport import Stream, TcpTransport
from strandline.model.cluster import Address

_LOG = logging.getLogger(__name__)
_Stamp = tuple[tuple[str, int, int, int], ...]
"""(path, inode, size, time of the last change in ns) of each file."""


def find_file(name: str) -> Path:
    """Where a named file is on this machine; the name itself if it is nowhere."""
    path = Path(name)
    spark = sys.modules.get("pyspark.core.files")  # This room knows Spark only if it runs here.
    if path.exists() or spark is None:
        return path
    try:
        brought = Path(spark.SparkFiles.get(path.name))
    except (AssertionError, TypeError, AttributeError):  # No session is open in this process.
        return path
    return brought if brought.exists() else path


@dataclass(frozen=True, slots=True)
class Access:
    """A client's configuration: a file, or keys and values. Its text shows no value."""

    file: str = ""
    values: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"Access({self.file or ', '.join(name for name, _ in self.values)})"

    @classmethod
    def of(cls, values: Mapping[str, str]) -> "Access":
        """Of keys and values."""
        return cls(values=tuple(sorted(values.items())))

    def read(self, find: Find = find_file) -> ClientConfig:
        """What it says on this machine. Raises OperatorError."""
        if self.file:
            return read_client_config(find(self.file), find)
        return parse_client_config(dict(self.values), where="options", find=find)


class AccessTransport(TcpTransport):
    """See the module. Without `access`: plain connections. Raises OperatorError if it cannot be
    used from the start."""

    def __init__(self, access: Access | None = None, find: Find = find_file) -> None:
        self._access = access
        self._find = find
        self._config = ClientConfig() if access is None else access.read(find)
        self._seen: _Stamp = ()
        """Of the files before they were read, or empty: read again before the first connection."""
        super().__init__(self._config.tls, login=self._config.login)

    @property
    def is_secured(self) -> bool:
        """Whether the client has proved who it is, or could."""
        return self._access is not None

    @property
    def principal(self) -> str:
        """The user that rules are about."""
        return ANONYMOUS if self._access is None else self._config.principal

    def connect(self, address: Address, timeout_ms: int) -> Stream:
        """See `Transport.connect`."""
        if self._access is not None:
            self._read_again(self._access)
        return super().connect(address, timeout_ms)

    def _read_again(self, access: Access) -> None:
        present = _stamp(self._config)
        if present == self._seen:
            return
        self._seen = present
        try:
            self._config = access.read(self._find)
        except OperatorError as error:
            _LOG.warning("%s: going on with what it was before", error)
            return
        self._tls, self.login = self._config.tls, self._config.login


def _stamp(config: ClientConfig) -> _Stamp:
    found = []
    for path in config.files:
        try:
            state = path.stat()
        except OSError:
            found.append((str(path), -1, -1, -1))
        else:
            found.append((str(path), state.st_ino, state.st_size, state.st_mtime_ns))
    return tuple(found)
