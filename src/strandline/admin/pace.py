"""Long work on the broker's loop, a slice at a time.

Why:    a request over ten thousand partitions takes longer than a producer's record may wait.
How:    a slice is CPU time, not wall time: on a busy machine a scrape would otherwise hardly
        progress.
Owns:   what this thread had worked when the present slice began.
Source: design section 5."""

import asyncio
import time

SLICE_S = 0.003
PAUSE_S = 0.003
"""Between two slices: this work never takes more than half of the loop."""


class Pace:
    """See the module. Call `rest` often: it returns at once while the slice lasts."""

    def __init__(self) -> None:
        self._began_s = time.thread_time()

    async def rest(self) -> None:
        """Let others go first where this has taken long."""
        if time.thread_time() - self._began_s >= SLICE_S:
            await asyncio.sleep(PAUSE_S)
            self._began_s = time.thread_time()
