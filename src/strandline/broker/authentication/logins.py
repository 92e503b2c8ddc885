"""Logins by SASL: which mechanisms a listener has, and what a failure costs.

Why:    passwords must not be found by trying, and must not hold up the event loop.
How:    A failure is answered late (`failure_delays`). Slow steps run on a small pool of threads,
        with a bound of steps that wait.
Owns:   the threads.
Source: KIP-152; decision 0069."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from strandline.base.errors import ApiError
from strandline.broker.authentication.failure_delays import FailureDelays
from strandline.broker.authentication.token_verifier import verifier_of
from strandline.broker.operations.log_budget import LogBudget
from strandline.config.broker import BrokerConfig
from strandline.config.listener_section import Listener
from strandline.model.cluster import Cluster
from strandline.protocol.errors import Error
from strandline.security.sasl import oauth_bearer, plain
from strandline.security.sasl.mechanism import FAILED, TOKEN_BYTES_MAX, Mechanism, SaslError
from strandline.security.sasl.oauth_bearer import OAuthBearerServer
from strandline.security.sasl.plain import PlainServer
from strandline.security.sasl.scram import ScramServer
from strandline.security.sasl.secrets import SecretBook
from strandline.security.sasl.users_file import read_users_file
from strandline.security.session import Session

SLOW_STEPS_MAX = 256
"""Slow steps that wait or run; one more fails at once, and its client tries again."""
SLOW_STEPS_OF_ADDRESS_MAX = 32
"""The same of one address, so that it takes up a part of them only."""
LOGGED_LENGTH_MAX = 300
"""Characters of a reason in the log: it has the user's name as the client sent it."""
THREADS = 1

_log = logging.getLogger("strandline.security")


class Logins:
    """See the module."""

    def __init__(
        self, config: BrokerConfig, cluster: Cluster, *, wall_ms: Callable[[], int]
    ) -> None:
        self.delays = FailureDelays()
        self._listeners: dict[str, Listener] = {one.name: one for one in config.listeners}
        path = config.access.users_file
        written = read_users_file(Path(path)) if path else {}
        self._book = SecretBook(
            lambda: cluster.access.secrets, written, version=lambda: cluster.access.version
        )
        # None if clients show no tokens.
        self.tokens = verifier_of(config, wall_ms=wall_ms)
        self._lines = LogBudget(_log, lambda: asyncio.get_running_loop().time() * 1000)
        self._threads: ThreadPoolExecutor | None = None
        # {address: its slow steps that wait or run}.
        self._slow: Counter[str] = Counter()

    def mechanisms(self, session: Session) -> tuple[str, ...]:
        """The mechanisms of the listener that the client came to; none if it has no logins."""
        listener = self._listeners.get(session.listener)
        if listener is None or listener.entry is None or not listener.has_logins:
            return ()
        return listener.entry.sasl_mechanisms

    def session_ms(self, session: Session) -> int:
        """How long a login lasts there; 0 for no end."""
        listener = self._listeners.get(session.listener)
        return 0 if listener is None or listener.entry is None else listener.entry.sasl_session_ms

    def begin(self, mechanism: str) -> Mechanism:
        """A new exchange of a mechanism that the listener has."""
        if mechanism == oauth_bearer.NAME:
            assert self.tokens is not None
            return self.tokens.begin()
        if mechanism == plain.NAME:
            return PlainServer(self._book)
        return ScramServer(mechanism, self._book)

    async def step(self, exchange: Mechanism, token: bytes, session: Session) -> bytes:
        """The mechanism's answer to the client's message. Raises ApiError after the delay that a
        failure costs; the log has the reason, the client learns none."""
        try:
            if len(token) > TOKEN_BYTES_MAX:
                raise SaslError(f"a message of {len(token)} bytes")
            if not exchange.is_slow:
                await self._obtain_key(exchange, token)
                answer = exchange.step(token)
            else:
                answer = await self._step_aside(exchange, token, session.host)
        except SaslError as error:
            if not error.is_known:
                now_ms = asyncio.get_running_loop().time() * 1000
                delay_ms = self.delays.note(session.host, now_ms)
                reason = str(error)[:LOGGED_LENGTH_MAX]
                text = "a login from %s failed: %s"
                self._lines.write(logging.WARNING, text, session.host, reason)
                await asyncio.sleep(delay_ms / 1000)
            if error.challenge:
                return error.challenge
            raise ApiError(Error.SASL_AUTHENTICATION_FAILED, FAILED) from error
        if exchange.principal is not None:
            self.delays.forgive(session.host)
        return answer

    def start(self) -> None:
        """Keep the keys of tokens up to date, if clients log in by tokens."""
        if self.tokens is not None:
            self.tokens.start()

    def stop(self) -> None:
        """End the threads."""
        if self.tokens is not None:
            self.tokens.stop()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _obtain_key(self, exchange: Mechanism, token: bytes) -> None:
        """Wait for newer keys if the token may be of one of them."""
        if isinstance(exchange, OAuthBearerServer):
            assert self.tokens is not None
            await self.tokens.obtain_key(exchange, token)

    async def _step_aside(self, exchange: Mechanism, token: bytes, host: str) -> bytes:
        if self._slow[host] >= SLOW_STEPS_OF_ADDRESS_MAX:
            raise SaslError(
                f"{SLOW_STEPS_OF_ADDRESS_MAX} logins of its address are waiting already"
            )
        if self._slow.total() >= SLOW_STEPS_MAX:
            raise SaslError(f"{SLOW_STEPS_MAX} logins are waiting already")
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="logins")
        self._slow[host] += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, exchange.step, token)
        finally:
            self._slow[host] -= 1
            if not self._slow[host]:
                del self._slow[host]
