"""The writing half of a connection: answers in order, gathered bytes, file ranges by the kernel.

Why:    many small answers cost one system call; a large fetch never enters Python's memory.
How:    Bytes, and file ranges too small for a sendfile, are gathered into one sendmsg. Larger
        ranges go by sendfile, if the file has a descriptor. TLS takes bytes only: a range passes
        through memory in pieces, one at a time. Each call writes at most one connection's share of
        a pass of the loop.
Owns:   the answers that are queued and not yet in the socket.
Source: python-speed reference 1 (fetch) and 9."""

import os
import socket
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from strandline.base.disk import Buffer, File
from strandline.base.errors import StorageError
from strandline.broker.server.limits import (
    IOVEC_COUNT_MAX,
    SENDFILE_BYTES_MIN,
    WRITE_BYTES_PER_PASS,
)
from strandline.network.streams import Stream, TlsStream
from strandline.protocol.primitives import BUFFERS, Part

PREAD_BYTES_MAX = 1024 * 1024
"""A large range of a file without a descriptor is read in pieces of this size."""
TLS_PREAD_BYTES_MAX = 256 * 1024
"""A range of a file is read in pieces of this size for TLS: a slow client holds one in memory."""


class FilePart(NamedTuple):
    """A part of an answer: `size_bytes` of `file` from `position`. While it is queued the file
    stays readable. The codec only asks how long a part is, so a fetched gigabyte never enters
    Python's memory."""

    file: File
    position: int
    size_bytes: int


class Outbox:
    """See the module."""

    __slots__ = (
        "_piece_bytes_max",
        "_queue",
        "_range_sent",
        "_sends_files",
        "_stream",
        "backlog_bytes",
    )

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        # Whether the kernel can send a file's bytes as they are.
        self._sends_files = not isinstance(stream, TlsStream)
        self._piece_bytes_max = PREAD_BYTES_MAX if self._sends_files else TLS_PREAD_BYTES_MAX
        self._queue: deque[Buffer | FilePart] = deque()
        # How much of the file range at the head of the queue is in the socket already.
        self._range_sent = 0
        # Bytes in memory only: file ranges take none.
        self.backlog_bytes = 0

    @property
    def is_empty(self) -> bool:
        """Whether all answers are in the socket."""
        return not self._queue

    def add(self, parts: Iterable[Part]) -> None:
        """Queue the parts of an answer."""
        for part in parts:
            if type(part) is bytes or isinstance(part, BUFFERS):
                if part:
                    self._queue.append(part)
                    self.backlog_bytes += len(part)
            else:
                assert isinstance(part, FilePart)
                if part.size_bytes:
                    self._queue.append(part)

    def write(self) -> bool:
        """Write what the socket takes; whether it took anything. Raises OSError, StorageError."""
        budget = WRITE_BYTES_PER_PASS
        queue = self._queue
        while queue and budget > 0:
            head = queue[0]
            if isinstance(head, FilePart) and self._sends_files and _goes_by_itself(head):
                wanted = min(head.size_bytes - self._range_sent, budget)
                written = self._send_range(head, wanted)
            else:
                wanted, written = self._send_buffers()
            budget -= written
            if written < wanted:
                break
        return budget < WRITE_BYTES_PER_PASS

    def clear(self) -> None:
        """Drop all answers."""
        self._queue.clear()
        self.backlog_bytes = 0

    def _send_range(self, head: FilePart, wanted: int) -> int:
        """Let the kernel move a part of the file range at the head."""
        position = head.position + self._range_sent
        try:
            written = os.sendfile(self._stream.fileno(), head.file.fileno(), position, wanted)
        except (BlockingIOError, InterruptedError):
            return 0
        if written == 0:
            raise _cut_short(head, self._range_sent)
        self._range_sent += written
        if self._range_sent == head.size_bytes:
            self._queue.popleft()
            self._range_sent = 0
        return written

    def _send_buffers(self) -> tuple[int, int]:
        """One gathering write: bytes offered and bytes taken."""
        buffers: list[Buffer] = []
        offered = 0
        flags = 0
        for at in range(min(len(self._queue), IOVEC_COUNT_MAX)):
            part = self._queue[at]
            if isinstance(part, FilePart):
                if _goes_by_itself(part) and (at or self._sends_files):
                    flags = socket.MSG_MORE
                    break
                part = self._load(at, part)
            buffers.append(part)
            offered += len(part)
            if offered >= WRITE_BYTES_PER_PASS:
                break
        try:
            written = self._stream.sendmsg(buffers, (), flags)
        except (BlockingIOError, InterruptedError):
            return offered, 0
        self.backlog_bytes -= written
        if written == offered and len(buffers) == len(self._queue):
            self._queue.clear()
        else:
            self._drop(written)
        return offered, written

    def _load(self, at: int, part: FilePart) -> bytes:
        """Replace (the first piece of) the file range at `at` in the queue by its bytes."""
        length = min(part.size_bytes, self._piece_bytes_max)
        data = part.file.pread(length, part.position)
        if len(data) < length:
            raise _cut_short(part, len(data))
        self._queue[at] = data
        rest = part.size_bytes - length
        if rest:
            self._queue.insert(at + 1, FilePart(part.file, part.position + length, rest))
        self.backlog_bytes += length
        return data

    def _drop(self, count: int) -> None:
        queue = self._queue
        while count:
            head = queue.popleft()
            assert not isinstance(head, FilePart)
            if len(head) > count:
                queue.appendleft(memoryview(head)[count:])
                return
            count -= len(head)


def _goes_by_itself(part: FilePart) -> bool:
    return part.size_bytes >= SENDFILE_BYTES_MIN and part.file.fileno() >= 0


def _cut_short(part: FilePart, found: int) -> StorageError:
    return StorageError(
        part.file.path,
        part.position,
        expected=f"{part.size_bytes} bytes of record batches",
        found=f"{found} bytes: the file was cut",
    )
