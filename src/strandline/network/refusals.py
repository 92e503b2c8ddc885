"""Logs why connections of peers are refused, each reason once in a while.

Why:    a broker that is refused tries again twice a second.
Owns:   what was logged lately: {(host, reason): when}."""

import logging
import time

REPEAT_S = 60.0
REMEMBERED_MAX = 1_000

_log = logging.getLogger("strandline.network")


class Refusals:
    """See the module."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], float] = {}

    def tell(self, host: str, reason: str) -> None:
        """A connection from this address was refused."""
        now = time.monotonic()
        if now - self._told.get((host, reason), -REPEAT_S) < REPEAT_S:
            return
        if len(self._told) >= REMEMBERED_MAX:
            self._told.clear()
        self._told[host, reason] = now
        _log.warning("refused a connection from %s to the port for brokers: %s", host, reason)
