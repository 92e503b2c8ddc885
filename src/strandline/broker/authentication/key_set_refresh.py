"""Keeps the keys that tokens are verified with: reads them, and reads them again.

Why:    an identity provider changes its keys, and may be away. Logins must go on with the keys
        that are known, and take a new key at its first use.
How:    A thread reads the file or fetches the URL: at the start, once per interval, and if a token
        names an unknown key, but at most once per 10 s, as clients can make up names. The logins
        that need a newer set wait for the same reading. If it fails, the last good set stays.
Owns:   the set in use, the task.
Source: decision 0069."""

import asyncio
import logging
import ssl
from pathlib import Path
from urllib.parse import unquote, urlsplit

from strandline.base.errors import OperatorError, StrandlineError
from strandline.config.oauthbearer_section import OAuthBearerSection
from strandline.network.https_document import FetchError, fetch
from strandline.security.sasl.token_keys import (
    KEY_SET_BYTES_MAX,
    KeySetError,
    TokenKeys,
    read_key_set,
)

READ_INTERVAL_MIN_MS = 10_000
"""Between the beginnings of two readings."""
FETCH_MS = 5_000

_PLACE = "[oauthbearer] jwks_endpoint_url"
_log = logging.getLogger("strandline.security")


class KeySetRefresh:
    """See the module. Raises OperatorError if the file, or the trust, cannot be read now."""

    def __init__(self, section: OAuthBearerSection) -> None:
        self.keys = TokenKeys()
        self._url = section.jwks_endpoint_url
        parts = urlsplit(self._url)
        self._path = Path(unquote(parts.path)) if parts.scheme == "file" else None
        is_file = self._path is not None
        self._interval_ms = READ_INTERVAL_MIN_MS if is_file else section.jwks_endpoint_refresh_ms
        self._context = _trust(section.jwks_endpoint_trust)
        self._reading: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._began_at_s = float("-inf")
        self._failure = ""
        if is_file:
            try:
                self._take(self._read())
            except StrandlineError as error:
                raise OperatorError(f"{_PLACE}: {error}") from error

    def start(self) -> None:
        """Read now, and then once per interval."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Read no more; a reading under way ends by itself."""
        for task in (self._task, self._reading):
            if task is not None:
                task.cancel()
        self._task = self._reading = None

    async def refresh(self) -> None:
        """Wait for a newer set, if one may be read now."""
        if self._reading is None:
            loop = asyncio.get_running_loop()
            if (loop.time() - self._began_at_s) * 1000 < READ_INTERVAL_MIN_MS:
                return
            self._began_at_s = loop.time()
            self._reading = loop.create_task(self._read_aside())
        await asyncio.wait((self._reading,), timeout=2 * FETCH_MS / 1000)

    async def _run(self) -> None:
        while True:
            await self.refresh()
            is_good = len(self.keys) and not self._failure
            interval_ms = self._interval_ms if is_good else READ_INTERVAL_MIN_MS
            await asyncio.sleep(interval_ms / 1000)

    async def _read_aside(self) -> None:
        try:
            keys = await asyncio.to_thread(self._read)
            self._take(keys)
        except StrandlineError as error:
            self._fail(str(error))
        except Exception as error:  # A task boundary: the next reading tries again.
            self._fail(f"{type(error).__name__}: {error}")
        finally:
            self._reading = None

    def _take(self, keys: TokenKeys) -> None:
        if self._failure or len(keys) != len(self.keys):
            _log.info("%s: %d keys verify tokens", _PLACE, len(keys))
        if keys.left_out and keys.left_out != self.keys.left_out:
            _log.warning("%s: not all keys are of use: %s", _PLACE, "; ".join(keys.left_out[:5]))
        self.keys, self._failure = keys, ""

    def _fail(self, reason: str) -> None:
        if reason != self._failure:
            stay = "the keys read last stay in use" if len(self.keys) else "no token is taken"
            _log.error("%s: %s; %s, and it is tried again", _PLACE, reason, stay)
        self._failure = reason

    def _read(self) -> TokenKeys:
        """On a thread. Raises StrandlineError."""
        if self._path is None:
            document = fetch(
                self._url,
                context=self._context,
                deadline_ms=FETCH_MS,
                bytes_max=KEY_SET_BYTES_MAX,
            )
        else:
            document = _read_file(self._path)
        try:
            return read_key_set(document)
        except KeySetError as error:
            raise KeySetError(f"{self._url}: {error}") from error


def _trust(path: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=path or None)
    except (OSError, ValueError) as error:
        raise OperatorError(
            f"[oauthbearer] jwks_endpoint_trust: {path}: no PEM file of certificates: {error}"
        ) from error


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            document = file.read(KEY_SET_BYTES_MAX + 1)
    except OSError as error:
        raise FetchError(f"{path}: cannot read: {error.strerror}") from error
    if len(document) > KEY_SET_BYTES_MAX:
        raise FetchError(f"{path}: more than {KEY_SET_BYTES_MAX} bytes")
    return document
