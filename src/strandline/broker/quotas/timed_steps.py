"""A coroutine whose time on the loop counts.

Why:    a handler that waits uses nothing of the loop meanwhile: only its steps count.
Source: decision 0070."""

from collections.abc import Callable, Coroutine
from typing import Any


class TimedSteps(Coroutine[Any, Any, None]):
    """`steps`, driven by a task as usual. `charge(begin_ns)` is called after each step; `now_ns`
    is its clock."""

    def __init__(
        self,
        steps: Coroutine[Any, Any, None],
        *,
        now_ns: Callable[[], int],
        charge: Callable[[int], None],
    ) -> None:
        self._steps = steps
        self._now_ns = now_ns
        self._charge = charge

    def send(self, value: Any) -> Any:
        """One step."""
        begin_ns = self._now_ns()
        try:
            return self._steps.send(value)
        finally:
            self._charge(begin_ns)

    def throw(self, *args: Any) -> Any:
        """One step, which begins with an error."""
        begin_ns = self._now_ns()
        try:
            return self._steps.throw(*args)
        finally:
            self._charge(begin_ns)

    def close(self) -> None:
        """End it."""
        self._steps.close()

    def __await__(self) -> Any:
        """The steps; a task drives `send` instead."""
        return self._steps.__await__()
