"""Claims the buckets for this cluster before anything is written to them or deleted.

How:    each bucket is claimed once per start of the broker, and again every `RETRY_MS` while it
        does not answer. A bucket of another cluster is not used; the log says why.
Owns:   which buckets are this cluster's, as far as this broker knows.
Source: decisions 0057 and 0058."""

import asyncio
import logging

from strandline.base.clock import Clock
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.objects.claim import ForeignClaimError, claim_bucket
from strandline.tiered.objects.store import StoreError

RETRY_MS = 5_000

_log = logging.getLogger("strandline.broker")


class Claims:
    """See the module."""

    def __init__(self, clock: Clock, buckets: Buckets) -> None:
        self._clock = clock
        self._buckets = buckets
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again_ms: dict[str, int] = {}
        self._reported: dict[str, str] = {}
        self.claimed: set[str] = set()
        """Buckets that are this cluster's."""
        self.foreign: dict[str, str] = {}
        """{bucket of another cluster: why it is not used}"""

    def is_claimed(self, bucket: str) -> bool:
        """Whether the bucket is surely this cluster's."""
        return bucket in self.claimed

    def look(self, cluster_id: str) -> None:
        """Claim the buckets that are not yet; called again and again."""
        if not cluster_id or len(self.claimed) == len(self._buckets.names):
            return
        now_ms = self._clock.monotonic_ms()
        for bucket in self._buckets.names:
            is_due = now_ms >= self._again_ms.get(bucket, 0)
            if bucket not in self.claimed and bucket not in self._tasks and is_due:
                task = asyncio.get_running_loop().create_task(self._claim(bucket, cluster_id))
                self._tasks[bucket] = task

    def stop(self) -> None:
        """End what is under way."""
        for task in list(self._tasks.values()):
            task.cancel()

    async def _claim(self, bucket: str, cluster_id: str) -> None:
        try:
            store = self._buckets.store(bucket)
            await claim_bucket(store, bucket=bucket, cluster_id=cluster_id)
            self.claimed.add(bucket)
            self.foreign.pop(bucket, None)
        except ForeignClaimError as error:
            self.foreign[bucket] = str(error)
            self._report(bucket, f"tiered storage does not use it: {error}")
        except StoreError as error:
            self._report(bucket, f"bucket {bucket} cannot be claimed yet: {error}")
        finally:
            self._again_ms[bucket] = self._clock.monotonic_ms() + RETRY_MS
            self._tasks.pop(bucket, None)

    def _report(self, bucket: str, message: str) -> None:
        if self._reported.get(bucket) != message:
            self._reported[bucket] = message
            _log.warning("%s", message)
