"""One connection to one broker: which versions it speaks, requests out, answers in order.

How:    CONNECTED --ApiVersions, login--> READY; requests may follow each other before their
        answers come. A login that ends is run again before, when no answer is due. Any failure
        closes the connection for good: the owner makes another.
        A request is `i32 size, header, body`; a response `i32 size, i32 correlation id, [tags],
        body`.
Owns:   the stream and the requests whose answers are due.
Source: kafka-protocol reference 8.4 to 8.6."""

import struct
from collections import deque
from typing import TypeVar

from strandline.base.errors import ProtocolError
from strandline.client.errors import CannotConnectError, ClientError, NotOfferedError
from strandline.client.wire.access_token import TokenError
from strandline.client.wire.foreign import what_answered
from strandline.client.wire.login import AnyLogin, LoginError
from strandline.client.wire.transport import Stream, Transport
from strandline.config.addresses import format_address
from strandline.model.cluster import Address
from strandline.protocol.apis import API_KEYS, APIS, Api
from strandline.protocol.codec import decode, encode
from strandline.protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.table import Message

R = TypeVar("R", bound=Message)

RESPONSE_BYTES_MAX = 256 * 1024 * 1024
API_VERSIONS = API_KEYS["ApiVersions"]

_NAMED_VERSIONS_MAX = {
    "Produce": 12,  # Produce, Fetch: topics by name
    "Fetch": 12,
    "Metadata": 12,  # names always set
    "OffsetCommit": 9,  # OffsetCommit, OffsetFetch: topics by name, one group
    "OffsetFetch": 7,
    "FindCoordinator": 3,  # one key
    "ApiVersions": 0,  # every broker answers it, and names its own APIs in no other
    "DeleteTopics": 5,  # by name
}
VERSIONS_MAX: dict[int, int] = {
    API_KEYS[name]: version for name, version in _NAMED_VERSIONS_MAX.items()
}
"""The newest version of an API that this client makes use of, where it is not the newest there
is."""

NO_ANSWER = "it may expect TLS (--client-config FILE), or be the port between brokers"
"""What a peer may be that hangs up on the first request."""

RENEWED_AT_RATIO = 0.85
"""The part of a login's time after which the client logs in again."""
RENEWAL_PAUSE_MS = 1_000
"""Between two attempts to get the next token, while the last one holds."""
THROTTLED_MS_MAX = 60_000
"""The longest throttle time that is believed."""
_SIZE = struct.Struct(">i")


class Connection:
    """See the module. Raises CannotConnectError for everything that the network does."""

    def __init__(
        self,
        transport: Transport,
        address: Address,
        *,
        client_id: str,
        timeout_ms: int,
        negotiates: bool = True,
    ) -> None:
        """`negotiates`: ask for the broker's versions first; else take it to have this client's."""
        self.address = address
        self._client_id = client_id
        self._next_correlation = 0
        # Requests whose answers are due, in order: (correlation id, API, version).
        self._due: deque[tuple[int, Api, int]] = deque()
        self._versions: dict[int, tuple[int, int]] = {API_VERSIONS: (0, 0)}
        self.is_closed = False
        self._transport = transport
        # When to log in again, and when the login ends; None: it does not end.
        self._renew_at_ms: int | None = None
        self._ends_at_ms = 0
        # The broker reads nothing until then: the last answer said so.
        self._throttled_until_ms = 0
        try:
            self.stream: Stream = transport.connect(address, timeout_ms)
        except OSError as error:
            raise self._failed(error) from error
        if negotiates:
            self._negotiate(timeout_ms)
        else:
            self._versions = {key: (api.served_min, api.max_version) for key, api in APIS.items()}
        self._login = transport.login
        if self._login is not None:
            try:
                self._log_in(self._login, timeout_ms)
            except TokenError:
                self.close()
                raise

    @property
    def throttled_ms(self) -> int:
        """How long the next request should wait, because the client is over a quota (KIP-219)."""
        if not self._throttled_until_ms or self.is_closed:
            return 0
        return max(0, self._throttled_until_ms - self._transport.monotonic_ms())

    @property
    def due_count(self) -> int:
        """Requests without an answer yet."""
        return len(self._due)

    def version(self, api: Api, version_max: int | None = None) -> int:
        """The version to use with this broker, `version_max` in place of VERSIONS_MAX; raises
        NotOfferedError if there is none."""
        if api.key not in self._versions:
            raise NotOfferedError(f"{format_address(self.address)} does not offer {api.name}")
        low, high = self._versions[api.key]
        wanted = VERSIONS_MAX.get(api.key, api.max_version) if version_max is None else version_max
        version = min(high, wanted, api.max_version)
        if version < max(low, api.min_version):
            raise NotOfferedError(
                f"{format_address(self.address)} does not offer {api.name} in a version that this "
                f"client knows: it offers {low} to {high}"
            )
        return version

    def call(self, request: Message, response: type[R], timeout_ms: int) -> R:
        """Send a request and wait for its answer."""
        assert not self._due, "answers are due: use send and receive"
        self.send(request, timeout_ms)
        return self.receive(response, timeout_ms)

    def send(
        self,
        request: Message,
        timeout_ms: int,
        *,
        expects_answer: bool = True,
        version_max: int | None = None,
    ) -> None:
        """Send a request; its answer comes after those of the requests before it. `version_max`:
        the newest version that the caller makes use of, if it is not VERSIONS_MAX."""
        if self._renew_at_ms is not None and not self._due:
            self._renew(timeout_ms)
        api = APIS[request.API_KEY]
        version = self.version(api, version_max)
        body = encode(request, version)
        correlation = self._next_correlation
        self._next_correlation = (correlation + 1) & 0x7FFF_FFFF
        header = encode_request_header(
            RequestHeader(api.key, version, correlation, self._client_id),
            flexible=api.is_flexible(version),
        )
        try:
            self.stream.send((_SIZE.pack(len(header) + len(body)), header, body), timeout_ms)
        except OSError as error:
            raise self._failed(error) from error
        if expects_answer:
            self._due.append((correlation, api, version))

    def receive(self, response: type[R], timeout_ms: int) -> R:
        """The answer to the oldest open request."""
        correlation, api, version = self._due.popleft()
        assert api.response is response, f"the next answer is to {api.name}"
        try:
            beginning = bytes(self.stream.receive(_SIZE.size, timeout_ms))
            (size,) = _SIZE.unpack(beginning)
            if not _SIZE.size <= size <= RESPONSE_BYTES_MAX:
                raise ProtocolError(what_answered(beginning) or f"an answer of {size} bytes")
            frame = self.stream.receive(size, timeout_ms)
            answered, position = decode_response_header(frame, api.key, version)
            if answered != correlation:
                raise ProtocolError("an answer to another request")
            answer = decode(response, frame, position, version)[0]
        except OSError as error:
            raise self._failed(error) from error
        except ProtocolError as error:
            self.close()
            raise ClientError(
                f"{format_address(self.address)} does not speak Kafka's protocol: {error}"
            ) from error
        throttle_ms = getattr(answer, "throttle_time_ms", 0)
        if throttle_ms > 0:
            throttle_ms = min(throttle_ms, THROTTLED_MS_MAX)
            self._throttled_until_ms = self._transport.monotonic_ms() + throttle_ms
        return answer

    def close(self) -> None:
        """End it; harmless when it has ended."""
        self.is_closed = True
        self._due.clear()
        if hasattr(self, "stream"):
            self.stream.close()

    def _negotiate(self, timeout_ms: int) -> None:
        try:
            answer = self.call(ApiVersionsRequest(), ApiVersionsResponse, timeout_ms)
        except CannotConnectError as error:
            if isinstance(error.__cause__, ConnectionError):
                raise CannotConnectError(f"{error} without an answer: {NO_ANSWER}") from error
            raise
        if answer.error_code:
            self.close()
            raise ClientError(
                f"{format_address(self.address)} refuses to say what it speaks: "
                f"error {answer.error_code}"
            )
        for row in answer.api_keys:
            self._versions[row.api_key] = (row.min_version, row.max_version)
        self._versions[API_VERSIONS] = (0, 0)

    def _renew(self, timeout_ms: int) -> None:
        """Log in again if it is time."""
        assert self._renew_at_ms is not None and self._login is not None
        now_ms = self._transport.monotonic_ms()
        if now_ms < self._renew_at_ms:
            return
        self._renew_at_ms = None  # The requests of the login itself do not wait for it.
        try:
            self._log_in(self._login, timeout_ms)
        except TokenError:
            if now_ms >= self._ends_at_ms:
                self.close()
                raise
            self._renew_at_ms = now_ms + RENEWAL_PAUSE_MS

    def _log_in(self, login: AnyLogin, timeout_ms: int) -> None:
        def call(request: Message, response: type[R], /) -> R:
            return self.call(request, response, timeout_ms)

        try:
            lifetime_ms = login.run(call)
        except TokenError:
            raise
        except NotOfferedError as error:
            self.close()
            raise LoginError(f"{format_address(self.address)} takes no logins") from error
        except LoginError as error:
            self.close()
            raise LoginError(f"{format_address(self.address)}: {error}") from error
        if lifetime_ms > 0:
            now_ms = self._transport.monotonic_ms()
            self._renew_at_ms = now_ms + int(lifetime_ms * RENEWED_AT_RATIO)
            self._ends_at_ms = now_ms + lifetime_ms

    def _failed(self, error: OSError) -> CannotConnectError:
        self.close()
        if isinstance(error, TimeoutError):
            reason = "no answer in time"
        else:
            reason = (error.strerror or str(error) or type(error).__name__).lower()
        return CannotConnectError(f"{format_address(self.address)}: {reason}")
