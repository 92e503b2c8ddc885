"""Reads certificates and tokens again when their files change, and warns before one ends.

Why:    a renewed certificate must be in use, and an authority that was taken away out of use,
        without a restart. A forgotten renewal must be seen days before clients fail.
How:    Once per interval a thread looks at the files of all ports: disks may hang, the loop may
        not. What the files lack is logged once, until they change again.
Owns:   its task; what was logged last.
Source: docs/decisions/0069-access.md."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

from strandline.base.clock import Clock
from strandline.base.errors import OperatorError
from strandline.security.tls import TlsSettings

LOOK_INTERVAL_MS = 2_000
WARN_DAYS = 30
"""A certificate that ends sooner is logged, once a day."""
DAY_MS = 86_400_000

_log = logging.getLogger("strandline.broker")


class WatchedTls(Protocol):
    """The TLS of a port: `tls.ServerTls` or `peers.PeerTls`."""

    settings: TlsSettings

    @property
    def ends_at_ms(self) -> int:
        """When its certificate ends, in milliseconds since 1970."""

    def reload_if_changed(self) -> bool:
        """Take changed files; whether there were any. Raises OperatorError."""


class WatchedFile(Protocol):
    """A file that is read again: `http_tokens.HttpTokens`. `place`: the key that names it."""

    place: str

    def reload_if_changed(self) -> bool:
        """Take a changed file; whether it was one. Raises OperatorError."""


class CertificateWatch:
    """See the module. `ports`: the TLS of each port; `files`: other files."""

    def __init__(
        self,
        ports: Iterable[WatchedTls],
        *,
        clock: Clock,
        files: Iterable[WatchedFile] = (),
        interval_ms: int = LOOK_INTERVAL_MS,
    ) -> None:
        self.ports = tuple(ports)
        self._files = tuple(files)
        self._clock = clock
        self._interval_ms = interval_ms
        self._task: asyncio.Task[None] | None = None
        # {place: the day on which its end was logged last}
        self._warned: dict[str, int] = {}

    def start(self) -> None:
        """Look now and then; without files there is nothing to do."""
        if self.ports or self._files:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def seconds_left(self) -> dict[str, int]:
        """{port: how long its certificate holds, in seconds}; negative after its end."""
        now_ms = self._clock.wall_ms()
        return {one.settings.place: (one.ends_at_ms - now_ms) // 1000 for one in self.ports}

    def seconds_left_by_port(self) -> dict[tuple[str, ...], float]:
        """The same by short names: a listener's, `rpc`, `metrics`."""
        left = self.seconds_left().items()
        return {(place.split()[-1].strip("[]"),): seconds for place, seconds in left}

    def look(self) -> None:
        """Take changed files, and log what is wrong. Called on a thread."""
        for port in self.ports:
            try:
                if port.reload_if_changed():
                    _log.info("%s: new TLS handshakes use the changed files", port.settings.place)
            except OperatorError as error:
                _log.error("%s; the files read before stay in use", error)
        for file in self._files:
            try:
                if file.reload_if_changed():
                    _log.info("%s: the changed file counts", file.place)
            except OperatorError as error:
                _log.error("%s; what was read before counts until the file is mended", error)
        self._warn()

    def _warn(self) -> None:
        today = self._clock.wall_ms() // DAY_MS
        for place, left_s in self.seconds_left().items():
            days = left_s // 86_400
            if days >= WARN_DAYS or self._warned.get(place) == today:
                continue
            self._warned[place] = today
            if left_s < 0:
                _log.error("%s: the certificate has expired: renew it", place)
            else:
                _log.warning("%s: the certificate expires in %d days: renew it", place, days)

    async def _run(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.look)
            except Exception:  # A task boundary: the next look tries again.
                _log.exception("cannot look at the files of certificates")
            await asyncio.sleep(self._interval_ms / 1000)
