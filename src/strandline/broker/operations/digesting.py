"""Runs digests of logs beside the event loop, a few at a time.

Why:    to hash 64 MiB takes 40 ms, and reading them from a disk longer. Produce and fetch must not
        notice, and many auditors must not fill the broker's memory.
How:    one request after the other on a worker, which paces itself; at most `requests_max` wait.
        A request whose client has gone stops at the next pace.
Owns:   how many requests wait or run; one per broker.
Source: decision 0052."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from strandline.base.errors import ApiError
from strandline.protocol.errors import Error
from strandline.storage.digests.ranges import Digested
from strandline.storage.digests.walk import Pace

Work = Callable[[Pace], Digested]
Outcome = Digested | Exception
IsWanted = Callable[[], bool]
"""Whether the client still waits. May be called on any thread."""


class DigestWorker(Protocol):
    """What runs digests."""

    def run(self, work: Work, is_wanted: IsWanted, done: Callable[[Outcome], None]) -> None:
        """Run `work`, then `done` with its result or error on the broker's thread."""


class AtOnce:
    """A worker without a thread and without a pace."""

    def run(self, work: Work, is_wanted: IsWanted, done: Callable[[Outcome], None]) -> None:
        """See `DigestWorker`."""
        done(outcome_of(work, lambda _: True))


class Digesting:
    """See the module."""

    def __init__(self, *, requests_max: int, worker: DigestWorker | None = None) -> None:
        self.worker: DigestWorker = worker or AtOnce()
        self._requests_max = requests_max
        self._request_count = 0

    async def run(self, work: Work, *, is_wanted: IsWanted) -> Digested:
        """Run `work` on the worker. Raises ApiError(THROTTLING_QUOTA_EXCEEDED) if too many wait,
        and what `work` raises."""
        if self._request_count >= self._requests_max:
            raise ApiError(
                Error.THROTTLING_QUOTA_EXCEEDED,
                f"{self._request_count} digests are under way or wait; try again",
            )
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._request_count += 1
        self.worker.run(work, is_wanted, lambda outcome: self._on_done(future, outcome))
        outcome = await future
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _on_done(self, future: asyncio.Future[Outcome], outcome: Outcome) -> None:
        self._request_count -= 1
        if not future.done():  # The broker ends, and has cancelled the handler.
            future.set_result(outcome)


def outcome_of(work: Work, pace: Pace) -> Outcome:
    """What `work` returns, or the error that it raises: it is raised again where the request is
    answered."""
    try:
        return work(pace)
    except Exception as error:  # A task boundary: the worker goes on.
        return error
