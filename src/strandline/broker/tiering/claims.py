"""Claims the buckets for this cluster, and makes sure that each one is the bucket of its name.

Why:    two clusters under one prefix would delete each other's objects. A broker whose buckets are
        exchanged, or whose file system is not mounted, would upload to another bucket than the log
        says.
How:    no identity known:  claim it, give it an identity --IdentifyBucket--> the controller
        identity known:     read it --the same--> this cluster's;  absent, or another --> wrong
        Each bucket is looked at again every `RECHECK_MS`, and every `RETRY_MS` while it is wrong
        or does not answer. Once the controller knows an identity, nothing is created: a mount point
        stays empty. An upload asks before and after it puts an object (`confirm`).
Owns:   which buckets are this cluster's, as far as this broker knows.
Source: decisions 0057, 0058 and 0068."""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from strandline.base.clock import Clock
from strandline.base.errors import ApiError
from strandline.base.rng import Rng
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.controller.bucket_commands import BucketAnswer, IdentifyBucket
from strandline.controller.commands import Refused
from strandline.model.cluster import BucketIdentity
from strandline.replication.host.replication import Replication
from strandline.replication.wire import Ability
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.objects.claim import CLAIM, ForeignClaimError, claim_bucket, read_claim
from strandline.tiered.objects.identity import IDENTITY, give_identity, read_identity
from strandline.tiered.objects.store import ObjectAbsentError, ObjectStore, StoreError

RETRY_MS = 5_000
RECHECK_MS = 30_000
SUBMIT_TIMEOUT_MS = 5_000

_log = logging.getLogger("strandline.broker")


class WrongBucketError(StoreError):
    """It is not the bucket that the cluster uses under this name."""


class Confirmed(NamedTuple):
    """A bucket was this cluster's, with this identity; None while the cluster keeps none."""

    identity: BucketIdentity | None


class Claims:
    """See the module; one per broker."""

    def __init__(
        self,
        clock: Clock,
        buckets: Buckets,
        *,
        rng: Rng,
        controller: ControllerHost,
        replication: Replication,
    ) -> None:
        self._clock = clock
        self._buckets = buckets
        self._rng = rng
        self._controller = controller
        self._replication = replication
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._due_ms: dict[str, int] = {}
        self._read_ms: dict[str, int] = {}
        """{bucket: when its identity was last read, and the right one}"""
        self._reported: dict[str, str] = {}
        self._confirmed: dict[str, Confirmed] = {}
        self._answers: dict[str, BucketIdentity] = {}
        """{bucket: what the controller answered}: a snapshot of an earlier release lacks it."""
        self.wrong: dict[str, str] = {}
        """{bucket that is another cluster's, or another one of this cluster: a sentence}"""
        self.on_changed: list[Callable[[], None]] = []
        """Called when a bucket has become usable."""

    @property
    def claimed(self) -> frozenset[str]:
        """The buckets that are this cluster's, and those of their names."""
        return frozenset(one for one in self._buckets.names if self.is_claimed(one))

    def is_claimed(self, bucket: str) -> bool:
        """Whether the bucket is surely this cluster's, and the one of this name."""
        found = self._confirmed.get(bucket)
        return found is not None and found.identity == self.identity(bucket)

    def identity(self, bucket: str) -> BucketIdentity | None:
        """The identity that the cluster knows of a bucket."""
        return self._controller.cluster.buckets.get(bucket) or self._answers.get(bucket)

    def generation(self, bucket: str) -> int:
        """How often the bucket was replaced, as far as this broker knows."""
        known = self.identity(bucket)
        return 0 if known is None else known.generation

    def report(self) -> dict[str, str]:
        """{bucket of this broker's file: why it is not used; empty if nothing is wrong}."""
        return {one: self.wrong.get(one, "") for one in self._buckets.names}

    def look(self) -> None:
        """Look at the buckets that are due; called again and again."""
        if not self._controller.cluster.cluster_id:
            return
        now_ms = self._clock.monotonic_ms()
        for bucket in self._buckets.names:
            found = self._confirmed.get(bucket)
            is_stale = found is not None and found.identity != self.identity(bucket)
            is_due = is_stale or now_ms >= self._due_ms.get(bucket, 0)
            if is_due and bucket not in self._tasks:
                self._tasks[bucket] = asyncio.get_running_loop().create_task(self._look_at(bucket))

    def stop(self) -> None:
        """End what is under way."""
        for task in list(self._tasks.values()):
            task.cancel()

    async def confirm(self, bucket: str, generation: int, *, age_ms_max: int = 0) -> None:
        """Make sure that it is the bucket of this name, replaced so often: read it, unless that was
        done `age_ms_max` ago or later. Raises StoreError."""
        known = self.identity(bucket)
        age_ms = self._clock.monotonic_ms() - self._read_ms.get(bucket, -RECHECK_MS)
        if self.is_claimed(bucket) and age_ms < age_ms_max:
            return
        if self.generation(bucket) != generation:
            raise StoreError(f"bucket {bucket} was replaced meanwhile")
        if known is None:
            if not self.is_claimed(bucket):
                raise StoreError(f"bucket {bucket} is not claimed yet")
            return
        try:
            await self._require(bucket, known)
        except WrongBucketError as error:
            self._note_wrong(bucket, str(error))
            raise

    # ---- one bucket ------------------------------------------------------------------------------

    async def _look_at(self, bucket: str) -> None:
        delay_ms = RETRY_MS
        try:
            known = self.identity(bucket) or await self._identify(bucket)
            if known is not None:
                await self._require(bucket, known)
            self._note_right(bucket, known)
            delay_ms = RECHECK_MS
        except (ForeignClaimError, WrongBucketError) as error:
            self._note_wrong(bucket, str(error))
        except (StoreError, ApiError) as error:
            self._report(bucket, f"bucket {bucket} cannot be used yet: {error}")
        finally:
            self._due_ms[bucket] = self._clock.monotonic_ms() + delay_ms
            self._tasks.pop(bucket, None)

    async def _identify(self, bucket: str) -> BucketIdentity | None:
        """Claim a bucket that the cluster does not know yet; its identity then. None while some
        broker's release keeps none. Raises StoreError, ApiError."""
        store = self._buckets.store(bucket)
        cluster_id = self._controller.cluster.cluster_id
        if self._holds_records(bucket):
            await _require_claim(store, bucket)
        await claim_bucket(store, bucket=bucket, cluster_id=cluster_id)
        if not self._may_identify():
            return None
        found = await give_identity(store, bucket=bucket, rng=self._rng)
        answer = await self._controller.submit(
            IdentifyBucket(bucket, found), timeout_ms=SUBMIT_TIMEOUT_MS
        )
        if isinstance(answer, Refused):
            raise WrongBucketError(f"bucket {bucket} is not used: {answer.message}")
        assert isinstance(answer, BucketAnswer), answer
        self._answers[bucket] = BucketIdentity(answer.id, answer.generation)
        return self.identity(bucket)

    def _holds_records(self, bucket: str) -> bool:
        """Whether a log here says that the bucket holds records: then it is no new one."""
        replicas = self._replication.replicas.values()
        return any(one.tier.state.live(bucket) for one in replicas)

    def _may_identify(self) -> bool:
        """Whether the controller, and every broker that is heard, can keep identities."""
        contacts, own = self._replication.contacts, self._replication.self_id
        leader = self._controller.leader_id
        can_do = leader == own or contacts.can_do(leader, Ability.BUCKET_IDENTITIES)
        others = (one for one in self._controller.cluster.brokers if one != own)
        return can_do and not any(
            contacts.cannot_do(one, Ability.BUCKET_IDENTITIES) for one in others
        )

    async def _require(self, bucket: str, known: BucketIdentity) -> None:
        """Raises WrongBucketError if it is another one, StoreError if that is not certain."""
        store = self._buckets.store(bucket)
        try:
            found = await read_identity(store)
        except ObjectAbsentError:
            found = ""
        if found == known.id:
            self._read_ms[bucket] = self._clock.monotonic_ms()
            return
        names = self._controller.cluster.buckets.items()
        other = next((name for name, one in names if found and one.id == found), None)
        what = (
            f"it is bucket {other} of this cluster"
            if other is not None
            else f"it has another {IDENTITY}"
            if found
            else f"it has no {IDENTITY}"
        )
        raise WrongBucketError(
            f"bucket {bucket} is not the one that this cluster uses by this name: {what}. Nothing "
            "is uploaded to it, and nothing counts as held there. Mount its file system, or "
            "correct [tiered] buckets; to let another bucket take its place: `strandline tiered "
            f"replace {bucket}`"
        )

    # ---- what is found ---------------------------------------------------------------------------

    def _note_right(self, bucket: str, known: BucketIdentity | None) -> None:
        was = self._confirmed.get(bucket)
        self._confirmed[bucket] = Confirmed(known)
        self._replication.wrong_buckets.discard(bucket)
        if self.wrong.pop(bucket, None) is not None:
            _log.info("bucket %s is the right one again", bucket)
        self._reported.pop(bucket, None)
        if was != self._confirmed[bucket]:
            for callback in self.on_changed:
                callback()

    def _note_wrong(self, bucket: str, message: str) -> None:
        self._confirmed.pop(bucket, None)
        self._read_ms.pop(bucket, None)
        self._replication.wrong_buckets.add(bucket)
        self.wrong[bucket] = message
        self._report(bucket, message)

    def _report(self, bucket: str, message: str) -> None:
        if self._reported.get(bucket) != message:
            self._reported[bucket] = message
            _log.warning("%s", message)


async def _require_claim(store: ObjectStore, bucket: str) -> None:
    """Make sure that a bucket that holds records was claimed. Raises StoreError."""
    try:
        await read_claim(store)
    except ObjectAbsentError:
        raise WrongBucketError(
            f"bucket {bucket} has no {CLAIM}, though logs say that it holds records: is its file "
            "system mounted, and is it the same bucket? Nothing is uploaded to it"
        ) from None
