"""Runs long pieces of work on one thread, in order, and hands each result back to the loop.

Why:    decompressing a large batch takes up to half a second; the event loop must answer
        heartbeats meanwhile. One thread, so that one such batch at a time takes memory.
How:    `run(work, done)`: `work` runs on the thread, and `post` brings `done(its result)` back to
        the broker's thread. `work` returns its errors, it does not raise them.
Owns:   the thread, which begins with the first piece of work and ends with the process."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

R = TypeVar("R")
Post = Callable[[Callable[[], None]], None]


class WorkerThread:
    """See the module. `post` runs a callback on the broker's thread, from any thread."""

    def __init__(self, post: Post, *, name: str) -> None:
        self._post = post
        self._name = name
        self._queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._is_started = False

    def run(self, work: Callable[[], R], done: Callable[[R], None]) -> None:
        """Queue `work`."""

        def do() -> None:
            result = work()
            self._post(lambda: done(result))

        self._queue.put(do)
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while True:
            self._queue.get()()
