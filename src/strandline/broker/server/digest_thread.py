"""A thread that digests logs, slower than it could.

Why:    a thread of pure Python holds the interpreter for up to 5 ms at a time, and the event loop
        waits for it. A thread that pauses after each small piece lets the loop run.
How:    after each piece (`storage.digests.walk.PACE_BYTES`, some 0.3 ms) it sleeps for the CPU time
        that the piece took, and longer where the rate says so. Hashing and reading release the
        interpreter.
Owns:   the worker thread, and when it may read on.
Source: decision 0052."""

import time
from collections.abc import Callable

from strandline.broker.operations.digesting import IsWanted, Outcome, Work, outcome_of
from strandline.broker.server.worker_thread import Post, WorkerThread


class DigestThread:
    """A `digesting.DigestWorker`. `rate_bytes_per_s`: the most it reads."""

    def __init__(self, post: Post, *, rate_bytes_per_s: int) -> None:
        self._thread = WorkerThread(post, name="digests")
        self._rate_bytes_per_s = rate_bytes_per_s
        self._free_s = 0.0
        """When the bytes read so far are within the rate, in monotonic seconds."""
        self._resumed_cpu_s = 0.0
        """The thread's CPU time when the piece under way began."""

    def run(self, work: Work, is_wanted: IsWanted, done: Callable[[Outcome], None]) -> None:
        """See `DigestWorker`."""

        def paced() -> Outcome:
            if not is_wanted():
                return TimeoutError("the client has gone")
            self._free_s = max(self._free_s, time.monotonic())
            self._resumed_cpu_s = time.thread_time()
            return outcome_of(work, lambda count: self._pace(count, is_wanted))

        self._thread.run(paced, done)

    def _pace(self, read_bytes: int, is_wanted: IsWanted) -> bool:
        self._free_s += read_bytes / self._rate_bytes_per_s
        piece_s = time.thread_time() - self._resumed_cpu_s
        time.sleep(max(piece_s, self._free_s - time.monotonic()))
        self._resumed_cpu_s = time.thread_time()
        return is_wanted()
