"""The bytes of one connection: plain, which is the socket itself, or TLS.

Why:    readers and writers need not know how bytes are protected, and a plain connection pays
        nothing for those that are.
How:    A `Stream` has the methods of a non-blocking socket. It raises BlockingIOError for "not
        now", whichever way TLS wants to go: a reader waits for readable, a writer for writable.
            TLS takes bytes off the socket a record at a time (at most 16 KB). So a reader asks
        `pending_bytes` if it stops before the stream says "not now": the kernel reports nothing
        readable for them.
            A write that TLS could not finish is repeated with the same bytes, which stay at the
        head of the writer's queue.
Owns:   the SSLSocket, and the bytes of one unfinished write.
Source: docs/decisions/0069-access.md; OpenSSL's SSL_write(3) and SSL_get_error(3)."""

import errno
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Protocol

from strandline.base.disk import Buffer

RECORD_BYTES = 16 * 1024
"""The most that one record of TLS carries. Smaller parts are joined into one."""


class Stream(Protocol):
    """What readers and writers need of a connection; a non-blocking `socket.socket` is one."""

    def fileno(self) -> int:
        """The descriptor to watch; -1 once closed."""

    def recv_into(self, buffer: Buffer, /) -> int:
        """Read once; the count of bytes, 0 at the end. Raises OSError, BlockingIOError too."""

    def sendmsg(
        self,
        buffers: Iterable[Buffer],
        ancdata: Iterable[tuple[int, int, Buffer]] = ...,
        flags: int = ...,
        /,
    ) -> int:
        """Write; the count of bytes taken, at least 1. Raises OSError, BlockingIOError too."""

    def close(self) -> None:
        """Close the socket."""


class TlsStream:
    """A `Stream` over a TLS socket whose handshake is done; see the module."""

    __slots__ = ("_closed", "_socket", "_unfinished")

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._socket = sock
        # The bytes that the last write offered in vain.
        self._unfinished: Buffer | None = None
        self._closed = False

    @property
    def pending_bytes(self) -> int:
        """Bytes that are off the socket and can be read without waiting."""
        return 0 if self._closed else self._socket.pending()

    def fileno(self) -> int:
        """See `Stream`."""
        return self._socket.fileno()

    def getsockopt(self, level: int, option: int, size_bytes: int, /) -> bytes:
        """An option of the socket."""
        return self._socket.getsockopt(level, option, size_bytes)

    def recv_into(self, buffer: Buffer, /) -> int:
        """See `Stream`: reads records until the buffer is full or no more has come. To ask in vain
        costs less than a pass of the loop for each request would."""
        view = memoryview(buffer)
        size = len(view)
        filled = 0
        receive = self._socket.recv_into
        while filled < size:
            try:
                count = receive(view[filled:] if filled else view)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
                if filled:
                    return filled
                raise BlockingIOError from error
            except ssl.SSLError as error:
                if filled:
                    return filled  # The next read meets the same error.
                raise ConnectionResetError(errno.ECONNRESET, str(error)) from error
            if count == 0:
                return filled
            filled += count
        return filled

    def sendmsg(
        self,
        buffers: Iterable[Buffer],
        _ancdata: Iterable[tuple[int, int, Buffer]] = (),
        _flags: int = 0,
        /,
    ) -> int:
        """See `Stream`. After a BlockingIOError or a short count the next call offers the same
        bytes again, from the first that was not taken."""
        written = 0
        send = self._socket.send
        chunk: Buffer = b""
        try:
            for chunk in self._chunks(buffers):
                while chunk:
                    taken = send(chunk)
                    written += taken
                    chunk = memoryview(chunk)[taken:]
        except ssl.SSLWantWriteError as error:
            self._unfinished = chunk
            if not written:
                raise BlockingIOError from error
        except ssl.SSLError as error:
            raise ConnectionResetError(errno.ECONNRESET, str(error)) from error
        return written

    def close(self) -> None:
        """Say that the stream ends, as far as the socket takes that, and close it."""
        if self._closed:
            return
        self._closed = True
        self._unfinished = None
        with suppress(OSError, ValueError):  # It waits for the peer's answer, which is not read.
            self._socket.unwrap()
        self._socket.close()

    def _chunks(self, buffers: Iterable[Buffer]) -> Iterator[Buffer]:
        """The bytes of the buffers: large buffers as they are, small ones joined; the unfinished
        write first."""
        skipped_bytes = 0
        if self._unfinished is not None:
            chunk, self._unfinished = self._unfinished, None
            skipped_bytes = len(chunk)
            yield chunk
        joined: list[Buffer] = []
        joined_bytes = 0
        for buffer in buffers:
            size = len(buffer)
            if size <= skipped_bytes:
                skipped_bytes -= size
                continue
            part = memoryview(buffer)[skipped_bytes:] if skipped_bytes else buffer
            size -= skipped_bytes
            skipped_bytes = 0
            if joined_bytes and joined_bytes + size > RECORD_BYTES:
                yield b"".join(joined)
                joined, joined_bytes = [], 0
            if size >= RECORD_BYTES:
                yield part
                continue
            joined.append(part)
            joined_bytes += size
        if joined:
            yield b"".join(joined)
