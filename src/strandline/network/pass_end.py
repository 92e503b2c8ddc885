"""What runs at the end of a pass of the event loop, once for all requests of the pass.

Why:    each handle of the loop that a callback adds costs a pass of its own, with a system call
        that asks for more to read. A request needs several steps that others can share: append,
        flush, send, answer.
How:    what came in -> append to logs -> begin flushes, write to peers -> write to clients
        The first step that is added makes the loop call `_run` after it has dealt with all sockets
        of this pass. `_run` runs the steps in the order in which they were added, and those that
        they add, until none is left. Only then does the loop look for more.
Owns:   the steps that wait; one per event loop.
Source: docs/decisions/0074-layers-of-a-request.md."""

import asyncio
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary, ref


class PassEnd:
    """See the module."""

    __slots__ = ("_is_due", "_loop", "_steps")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)  # Else the table would keep every loop for ever.
        self._steps: deque[Callable[[], None]] = deque()
        self._is_due = False

    @staticmethod
    def of(loop: asyncio.AbstractEventLoop) -> "PassEnd":
        """The one of this loop."""
        found = _of_loops.get(loop)
        if found is None:
            found = _of_loops[loop] = PassEnd(loop)
        return found

    def add(self, step: Callable[[], None]) -> None:
        """See `base.clock.Clock.at_pass_end`."""
        self._steps.append(step)
        if not self._is_due:
            self._run_soon()

    def _run_soon(self) -> None:
        loop = self._loop()
        if loop is not None:
            self._is_due = True
            loop.call_soon(self._run)

    def _run(self) -> None:
        steps = self._steps
        try:
            while steps:
                steps.popleft()()
        finally:
            self._is_due = False
            if steps:  # One has failed: the loop reports it, and the others run.
                self._run_soon()


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, PassEnd] = WeakKeyDictionary()
