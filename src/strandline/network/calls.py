"""Requests and responses between brokers, on top of one-way messages.

Why:    a command to the controller needs a response or an error, not a stream.
How:    each call has a number, and its response carries the same one. Each process starts at a
        random number, so that a response to the broker's earlier process matches no call. A lost
        message ends as a time-out at the caller; a broken connection ends all calls to that peer at
        once. Handlers run as tasks.
Owns:   the calls in flight.
Source: design section 5 (control lane)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from strandline.base.errors import StrandlineError
from strandline.model.ids import BrokerId

CALLS_IN_FLIGHT_MAX = 10_000

_log = logging.getLogger("strandline.network")

Handler = Callable[[BrokerId, bytes], Awaitable[bytes]]


class CallError(StrandlineError):
    """A call got no answer: the peer is unreachable, too slow, or failed at it.

    `was_sent`: the peer may have got the question, and acted on it. `was_answered`: it has, and
    says what went wrong."""

    def __init__(self, message: str, *, was_sent: bool = True, was_answered: bool = False) -> None:
        super().__init__(message)
        self.was_sent = was_sent
        self.was_answered = was_answered


class CallMessage(msgspec.Struct, frozen=True, array_like=True):
    """A question (`method` set) or an answer (`method` empty; `error` set when it failed)."""

    number: int
    method: str
    payload: bytes
    error: str = ""


class Calls:
    """See the module. `send` queues one encoded message to a peer on the control lane;
    `first_number`: drawn for this process, in [1, 2^62]."""

    def __init__(self, send: Callable[[BrokerId, bytes], bool], *, first_number: int) -> None:
        self._send = send
        self._handlers: dict[str, Handler] = {}
        self._next_number = first_number
        self._waiting: dict[int, tuple[BrokerId, asyncio.Future[bytes]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(CallMessage)

    def register(self, method: str, handler: Handler) -> None:
        """Answer calls of `method` with `handler(sender, payload)`."""
        assert method not in self._handlers, method
        self._handlers[method] = handler

    async def call(self, peer: BrokerId, method: str, payload: bytes, *, timeout_ms: int) -> bytes:
        """The answer of `peer`; raises CallError when there is none in time."""
        if len(self._waiting) >= CALLS_IN_FLIGHT_MAX:
            raise CallError(f"{CALLS_IN_FLIGHT_MAX} calls are in flight already", was_sent=False)
        number = self._next_number
        self._next_number += 1
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (peer, future)
        try:
            if not self._send(peer, self._encoder.encode(CallMessage(number, method, payload))):
                raise CallError(f"broker {peer} is not connected", was_sent=False)
            async with asyncio.timeout(timeout_ms / 1000):
                return await future
        except TimeoutError as error:
            raise CallError(
                f"broker {peer} did not answer {method} within {timeout_ms} ms"
            ) from error
        finally:
            self._waiting.pop(number, None)

    def on_message(self, sender: BrokerId, message: memoryview) -> None:
        """Take a question or an answer in."""
        call = self._decoder.decode(message)
        if call.method:
            task = asyncio.get_running_loop().create_task(self._answer(sender, call))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        peer, future = self._waiting.get(call.number, (sender, None))
        if future is None or future.done() or peer != sender:
            return
        if call.error:
            future.set_exception(CallError(call.error, was_answered=True))
        else:
            future.set_result(call.payload)

    def on_peer_lost(self, peer: BrokerId) -> None:
        """End the calls to this peer."""
        for waiting_for, future in list(self._waiting.values()):
            if waiting_for == peer and not future.done():
                future.set_exception(CallError(f"the connection to broker {peer} was lost"))

    def stop(self) -> None:
        """End everything that is under way."""
        for task in list(self._tasks):
            task.cancel()
        for _, future in list(self._waiting.values()):
            future.cancel()

    async def _answer(self, sender: BrokerId, call: CallMessage) -> None:
        handler = self._handlers.get(call.method)
        answer: CallMessage
        if handler is None:
            answer = CallMessage(call.number, "", b"", f"no method {call.method!r} here")
        else:
            try:
                answer = CallMessage(call.number, "", await handler(sender, call.payload))
            except StrandlineError as error:
                answer = CallMessage(call.number, "", b"", str(error) or type(error).__name__)
            except Exception:  # A task boundary: the caller gets one line, the log the cause.
                _log.exception("call %s from broker %d failed", call.method, sender)
                answer = CallMessage(call.number, "", b"", f"{call.method} failed; see the log")
        self._send(sender, self._encoder.encode(answer))
