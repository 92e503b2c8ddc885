"""What every Python program of the matrix shares: its records, and the lines that it prints."""

import signal
from collections.abc import Iterable

PARTITIONS, REPLICAS = 4, 3
RETENTION_MS = "7200000"
IDEMPOTENT = "idempotent"


def record(number: int) -> tuple[bytes, bytes | None, list[tuple[str, bytes]]]:
    """Key, value and headers of record n."""
    value = None if number % 20 == 19 else f"value-{number}-{'x' * 60}".encode()
    return f"key-{number % 7}".encode(), value, [("n", str(number).encode()), ("empty", b"")]


def show(
    partition: int,
    offset: int,
    key: bytes,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes]],
) -> None:
    """Print a record that was read."""
    length = -1 if value is None else len(value)
    pairs = ",".join(f"{name}={text.decode()}" for name, text in headers)
    text = (value or b"").decode()
    print(f"record\t{partition}\t{offset}\t{key.decode()}\t{length}\t{text}\t{pairs}", flush=True)


class Stop:
    """`is_asked` once SIGTERM came."""

    def __init__(self) -> None:
        self.is_asked = False
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self.is_asked = True
