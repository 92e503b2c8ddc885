"""Splits long work on the broker's loop into short slices, with a pause after each.

Why:    a request over ten thousand partitions takes longer than a producer's record may wait.
How:    a slice is `SLICE_S` of CPU time, not of wall time: on a busy machine a scrape would
        otherwise hardly progress.
Owns:   the thread's CPU time when the present slice began.
Source: design section 5."""

import asyncio
import time

SLICE_S = 0.003
PAUSE_S = 0.003
"""The pause between two slices: this work takes at most half of the loop's time."""


class Pace:
    """See the module. Call `rest` often: within a slice it returns at once."""

    def __init__(self) -> None:
        self._began_s = time.thread_time()

    async def rest(self) -> None:
        """Pause if the slice is used up, and begin the next one."""
        if time.thread_time() - self._began_s >= SLICE_S:
            await asyncio.sleep(PAUSE_S)
            self._began_s = time.thread_time()
