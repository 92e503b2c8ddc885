"""A client that sends one request at a time to one broker, and notes each answer.

Why:    a case is the same code for both brokers; what it was answered is compared afterwards.
How:    one connection for requests in turn. A broker that hangs up, or is silent, is an answer
        too."""

import socket
import struct
from dataclasses import dataclass, field, replace
from typing import TypeVar

from differential.answers import Flat, Names, flatten
from strandline.base.errors import ProtocolError
from strandline.protocol.apis import APIS
from strandline.protocol.codec import decode
from strandline.protocol.headers import decode_response_header, encode_request
from strandline.protocol.table import Message

TIMEOUT_S = 20
CLIENT_ID = "differential"
HUNG_UP: Flat = {"": "the broker hung up"}
SILENT: Flat = {"": f"no answer within {TIMEOUT_S} s"}

R = TypeVar("R", bound=Message)


class Connection:
    """One connection; requests are answered in their order."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=TIMEOUT_S)
        self._correlation_id = 0

    def send(self, request: Message, version: int) -> None:
        """Send a request; the answer is read by `receive`."""
        self._correlation_id += 1
        frame = encode_request(
            request, version, correlation_id=self._correlation_id, client_id=CLIENT_ID
        )
        self.send_bytes(struct.pack(">i", len(frame)) + frame)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def receive(self, response: type[R], version: int) -> R:
        """The answer to the next request. Raises ConnectionError if the broker hangs up."""
        frame = self.receive_frame()
        _, position = decode_response_header(frame, response.API_KEY, version)
        answer, end = decode(response, frame, position, version)
        if end != len(frame):
            raise ProtocolError(f"{len(frame) - end} bytes behind {response.__name__}")
        return answer

    def receive_frame(self) -> bytes:
        """The next answer with its header. Raises ConnectionError if the broker hangs up."""
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise ConnectionError("the broker hung up")
            data += more
        return data


@dataclass(slots=True)
class Peer:
    """One of the two brokers. `answers`: {label: answer} of the case that runs."""

    name: str
    host: str
    port: int
    answers: dict[str, Flat] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    _connection: Connection | None = None
    _sent: tuple[type[Message], int] | None = None

    def begin(self) -> None:
        """Start a case: nothing is noted, the connection is new."""
        self.answers = {}
        self.names = Names()
        self._hang_up()

    def ask(self, label: str, request: Message, version: int) -> Message | None:
        """Send a request and note its answer; None if the broker hung up or is silent."""
        assert label not in self.answers, f"two answers are named {label}"
        answer = None
        try:
            answer = self.ask_silently(request, version)
            self.answers[label] = HUNG_UP if answer is None else flatten(answer, self.names)
        except TimeoutError:
            self._hang_up()
            self.answers[label] = SILENT
        return answer

    def ask_silently(self, request: Message, version: int) -> Message | None:
        """Send a request whose answer is not compared."""
        if self._connection is None:
            self._connection = Connection(self.host, self.port)
        try:
            self._connection.send(request, version)
            return self._connection.receive(APIS[request.API_KEY].response, version)
        except ConnectionError:
            self._hang_up()
            return None

    def another(self) -> "Peer":
        """Another client of the same broker: a connection of its own, answers noted beside."""
        return replace(self, _connection=None)

    def send(self, request: Message, version: int) -> None:
        """Send a request whose answer `receive` reads, while other clients ask."""
        if self._connection is None:
            self._connection = Connection(self.host, self.port)
        self._connection.send(request, version)
        self._sent = (APIS[request.API_KEY].response, version)

    def receive(self, label: str) -> Message | None:
        """Note the answer to what was sent; None if the broker hung up or is silent."""
        assert label not in self.answers, f"two answers are named {label}"
        assert self._connection is not None and self._sent is not None
        try:
            answer = self._connection.receive(*self._sent)
        except (ConnectionError, TimeoutError) as error:
            self._hang_up()
            self.answers[label] = SILENT if isinstance(error, TimeoutError) else HUNG_UP
            return None
        self.answers[label] = flatten(answer, self.names)
        return answer

    def send_frame(self, label: str, frame: bytes) -> None:
        """Send bytes behind a size, and note the answer's length and error, or that there is none.

        For what no table can write: unknown keys, cut frames."""
        connection = Connection(self.host, self.port)
        try:
            connection.send_bytes(struct.pack(">i", len(frame)) + frame)
            self.answers[label] = {"": connection.receive_frame()[4:].hex()}
        except ConnectionError:
            self.answers[label] = HUNG_UP
        except TimeoutError:
            self.answers[label] = SILENT
        finally:
            connection.close()

    def note(self, label: str, value: object) -> None:
        """Note a value that is compared as it is."""
        self.answers[label] = {"": value}

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
