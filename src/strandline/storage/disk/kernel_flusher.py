"""Flushes files through the kernel's asynchronous I/O, without threads.

Why:    a thread that flushes shares the interpreter's lock with the loop, and each of the two wakes
        the other several times for one write. Files that it flushes one by one wait for each other,
        where the file system could make all of them durable in one commit of its journal.
How:    Linux's native AIO: `io_submit` of an fdatasync, whose completion increments an eventfd that
        the loop watches. One round at a time, each file once, all side by side: the file system
        makes a round durable in one commit. Flushes that begin at any time wait for each other's
        commits.

            add --> no round under way: one begins at the end of the loop's pass --> done
                --> a round under way: the next one, with all requests that came meanwhile

        If it cannot serve a file (too many at once, or a kernel or sandbox without AIO), it says so
        and the caller uses the thread.
Owns:   the kernel's context, the eventfd, and the callbacks that wait for each file.
Source: io_submit(2); Linux 4.18 (IOCB_CMD_FDSYNC); docs/decisions/0005, with figures."""

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Callable
from typing import Protocol

from strandline.storage.disk.descriptor import Descriptor
from strandline.storage.disk.flusher import FlushDone, answer_all

FILES_MAX = 64
"""Files that are flushed side by side; for more, one syncfs is faster."""

_CALLS = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}
"""{machine: numbers of io_setup, io_destroy, io_getevents, io_submit}."""
_FDSYNC = 3
_RESFD = 1
_IOCB = struct.Struct("<QIIHhIQQqQII")
"""data, key, rw_flags, opcode, priority, file, buffer, bytes, offset, reserved, flags, eventfd."""
_EVENT = struct.Struct("<QQqq")
"""data, iocb, result, result 2."""


AtPassEnd = Callable[[Callable[[], None]], object]


class ReaderLoop(Protocol):
    """The part of an event loop that the flusher uses."""

    def add_reader(self, fd: int, callback: Callable[[], None]) -> object:
        """Call `callback` whenever `fd` can be read."""

    def remove_reader(self, fd: int) -> object:
        """No more."""

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Call `callback` at the end of this pass of the loop."""


class KernelFlusher:
    """See the module. For one thread: the loop's."""

    def __init__(
        self, loop: ReaderLoop, numbers: tuple[int, int, int, int], at_pass_end: AtPassEnd
    ) -> None:
        """Raises OSError where the kernel does not offer this."""
        self._at_pass_end = at_pass_end
        self._setup, self._destroy, self._getevents, self._submit = numbers
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._call.restype = ctypes.c_long
        self._context = ctypes.c_ulong(0)
        self._invoke(self._setup, ctypes.c_long(FILES_MAX), ctypes.byref(self._context))
        self._eventfd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._loop = loop
        loop.add_reader(self._eventfd, self._on_ready)
        # {file: callbacks that wait for its flush}, of the next round.
        self._due: dict[Descriptor, list[FlushDone]] = {}
        # The same of the present round, by the file's number.
        self._under_way: dict[int, tuple[Descriptor, list[FlushDone]]] = {}
        # The kernel copies what is submitted, so it is used again and again.
        self._iocb = ctypes.create_string_buffer(_IOCB.size * FILES_MAX)
        start = ctypes.addressof(self._iocb)
        places = range(start, start + _IOCB.size * FILES_MAX, _IOCB.size)
        self._iocbs = (ctypes.c_void_p * FILES_MAX)(*places)
        self._events = ctypes.create_string_buffer(_EVENT.size * FILES_MAX)
        none, most = ctypes.c_long(0), ctypes.c_long(FILES_MAX)
        self._of_getevents = (self._getevents, self._context, none, most, self._events, None)
        self._is_refused = False

    @classmethod
    def create(
        cls, loop: ReaderLoop, at_pass_end: AtPassEnd | None = None
    ) -> "KernelFlusher | None":
        """One, where the kernel can do it. `at_pass_end`: see `base.clock.Clock`; the loop's
        `call_soon`, if there is none."""
        numbers = _CALLS.get(platform.machine())
        if sys.platform != "linux" or numbers is None or ctypes.sizeof(ctypes.c_long) != 8:
            return None
        try:
            return cls(loop, numbers, at_pass_end or loop.call_soon)
        except OSError:
            return None

    def add(self, descriptor: Descriptor, done: FlushDone) -> bool:
        """Flush the writes so far, then call `done`. False if it cannot serve the file: then no
        flush has begun."""
        waiting = self._due.get(descriptor)
        if waiting is not None:
            waiting.append(done)
            return True
        if self._is_refused or len(self._due) >= FILES_MAX:
            return False
        self._due[descriptor] = [done]
        if len(self._due) == 1 and not self._under_way:
            self._at_pass_end(self._begin)
        return True

    def close(self) -> None:
        """Finish all requested flushes without calling back. Blocks."""
        self._loop.remove_reader(self._eventfd)
        self._invoke(self._destroy, self._context)  # Waits for what is under way.
        for descriptor in self._due:
            os.fdatasync(descriptor.number)
        self._under_way.clear()
        self._due.clear()
        os.close(self._eventfd)
        self._is_refused = True

    # ---- the kernel ------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Submit all flushes that are due."""
        due, self._due = self._due, {}
        for place, descriptor in enumerate(due):
            number = descriptor.number
            _IOCB.pack_into(
                self._iocb, place * _IOCB.size,
                number, 0, 0, _FDSYNC, 0, number, 0, 0, 0, 0, _RESFD, self._eventfd,
            )  # fmt: skip
        taken = 0
        if due:
            try:
                taken = self._invoke(
                    self._submit, self._context, ctypes.c_long(len(due)), self._iocbs
                )
            except OSError as error:
                # A kernel that knows the calls but not this operation, or not for such a file.
                self._is_refused = not isinstance(error, BlockingIOError)
        for descriptor, waiting in due.items():
            if len(self._under_way) < taken:
                self._under_way[descriptor.number] = descriptor, waiting
            else:
                self._flush_here(descriptor, waiting)

    def _flush_here(self, descriptor: Descriptor, waiting: list[FlushDone]) -> None:
        """Flush in place, because the kernel takes no more requests. Blocks the loop."""
        failure = None
        try:
            os.fdatasync(descriptor.number)
        except OSError as error:
            failure = error
        answer_all([(done, failure) for done in waiting], self._loop.call_soon)

    def _on_ready(self) -> None:
        try:
            os.eventfd_read(self._eventfd)
        except BlockingIOError:
            return
        count = self._invoke(*self._of_getevents)
        answers: list[tuple[FlushDone, OSError | None]] = []
        for place in range(count):
            number, _, result, _ = _EVENT.unpack_from(self._events, place * _EVENT.size)
            error = None if result == 0 else OSError(-result, os.strerror(-result))
            _, waiting = self._under_way.pop(number)
            for done in waiting:
                answers.append((done, error))
        if self._due and not self._under_way:
            self._at_pass_end(self._begin)
        answer_all(answers, self._loop.call_soon)

    def _invoke(self, *arguments: object) -> int:
        result = int(self._call(*arguments))
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return result
