"""The uploader: puts the records of an intent into its bucket, as the intent's leader asks.

How:    ask that may start --> WAITING for its turn, memory, own log --> RUNNING: read, check, build
        --put--> read the trailer back --> DONE with the entry
                     store error --> BLOCKED, put again later, under the same name
                     records not here, or damaged --> FAILED
        An object is a function of its range and name, so putting it twice changes nothing. After a
        put, whatever its result, only what can be read back counts. Nothing is put while the bucket
        lacks all that the log says it has: its file system is not mounted, or it is another one.
        Its identity is read before and after each put, and has to be the same.
        An object that takes the place of others is made in the same way, out of those. These have
        a turn and memory of their own: no upload waits for them.
Owns:   the uploads on this broker, and their results until the intent is settled.
Source: decisions 0059 and 0066."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import msgspec
from fastcrc import crc32

from strandline.base.clock import Clock
from strandline.base.errors import ProtocolError, StorageError, StrandlineError
from strandline.broker.tiering.figures import TierFigures
from strandline.broker.tiering.memory_budget import MemoryBudget
from strandline.broker.tiering.messages import (
    Cleaning,
    UploadAsk,
    UploadPhase,
    UploadStatus,
    decode_ask,
    encode_message,
)
from strandline.broker.tiering.rewriting import RunSource, UnchangedError
from strandline.broker.tiering.sources import Source
from strandline.model.ids import BrokerId, GroupId, Offset
from strandline.tiered.objects.store import ObjectAbsentError, ObjectStore, StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import TrailerError
from strandline.tiered.segments.writer import SegmentObject, SegmentWriter, UnfitBatchError
from strandline.tiered.state.commands import Intend, IntendReplace

UPLOADS_PER_BUCKET_MAX = 2
"""At the same time; a bucket that hangs must not hold up the others."""
REWRITES_PER_BUCKET_MAX = 1
"""Objects at the same time that take the place of others."""
KEPT_MS = 600_000
"""How long a result is kept that no leader has asked for."""
KNOWN_COUNT_MAX = 1_000
"""Uploads and results together; further asks wait."""
WAIT_MS_MAX = 10_000
"""How long an ask is held at most."""
RETRY_MS_MIN = 500
RETRY_MS_MAX = 30_000
"""Between two puts of an object that the store refuses."""
CONFIRMED_MS = 5_000
"""So long ago at most the bucket's identity was read before a put; after one it is read anew."""
POLL_MS = 100
"""Between two looks whether this broker's log has the records by now."""

_NONE = Offset(0)
_WAITING = UploadStatus(UploadPhase.WAITING)
_Source = TypeVar("_Source", bound=Source)
_log = logging.getLogger("strandline.broker")


class NotHereError(StrandlineError):
    """Neither this broker's log nor another bucket has the records."""


class Uploading(Protocol):
    """What an upload needs of its broker."""

    def find_source(self, group: GroupId, intent: Intend) -> tuple[Source, str] | None:
        """(the source, its region); None while this broker's log does not have all of it durable
        and committed. Raises NotHereError, OSError, StorageError."""

    def find_run(
        self, group: GroupId, intent: IntendReplace, cleaning: Cleaning | None
    ) -> tuple[RunSource, str] | None:
        """(the objects to replace, their region); None while this broker does not know
        of the intent. Raises NotHereError."""

    def generation(self, bucket: str) -> int:
        """How often the bucket was replaced, as far as known here."""

    async def confirm_bucket(self, bucket: str, generation: int, *, age_ms_max: int) -> None:
        """Make sure that it is the right bucket, replaced so often: read it, unless that was done
        `age_ms_max` ago or later. Raises StoreError."""

    def report_missing(self, bucket: str, name: str) -> None:
        """A live object was not found where it should be: its leader may put it again."""

    def on_damaged(self, group: GroupId, intent: Intend) -> None:
        """The batches were damaged where they were read."""

    def store(self, bucket: str) -> ObjectStore:
        """The store of a bucket."""

    def ends_of_live(self, group: GroupId, bucket: str) -> Sequence[SegmentEntry]:
        """The first and the last live object of the partition there, as far as known here; none
        if there are none."""


@dataclass(slots=True)
class Upload:
    """One attempt, here. `changed`: set, and replaced, at each change of its status."""

    intent: Intend | IntendReplace
    generation: int = 0
    cleaning: Cleaning | None = None
    status: UploadStatus = _WAITING
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    asked_ms: int = 0
    task: asyncio.Task[None] | None = None

    def move(
        self,
        phase: UploadPhase,
        *,
        moved: int = 0,
        reason: str = "",
        entry: SegmentEntry | None = None,
        mapped_end: Offset = _NONE,
    ) -> None:
        """A new status."""
        was = self.status
        self.status = UploadStatus(
            phase, was.changes + 1, was.moved_bytes + moved, reason, entry, mapped_end
        )
        self.changed.set()
        self.changed = asyncio.Event()


class Uploads:
    """See the module; one per broker. `stall_ms`: the most that one put may take."""

    def __init__(
        self,
        *,
        clock: Clock,
        broker: Uploading,
        memory: MemoryBudget,
        rewrite_memory: MemoryBudget,
        figures: TierFigures,
        stall_ms: int,
    ) -> None:
        self._clock = clock
        self._broker = broker
        self._memory = memory
        self._rewrite_memory = rewrite_memory
        self._rewrite_turns: dict[str, asyncio.Semaphore] = {}
        self._figures = figures
        self._stall_ms = stall_ms
        self._known: dict[tuple[GroupId, str], Upload] = {}
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._is_stopped = False

    @property
    def known(self) -> Mapping[tuple[GroupId, str], Upload]:
        """{(group, name): upload}, those that are over included."""
        return self._known

    def stop(self) -> None:
        """Cancel all uploads."""
        self._is_stopped = True
        for upload in self._known.values():
            if upload.task is not None:
                upload.task.cancel()

    async def on_call(self, sender: BrokerId, payload: bytes) -> bytes:
        """A leader asks."""
        try:
            ask = decode_ask(payload)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"broker {sender} sent an unreadable ask to upload") from error
        return encode_message(await self.status(ask))

    async def status(self, ask: UploadAsk) -> UploadStatus:
        """How far the upload is, once that has changed or the ask's wait is over."""
        key = (ask.group, ask.intent.name)
        upload = self._known.get(key)
        if upload is None:
            if not ask.may_start or self._is_stopped:
                return UploadStatus(UploadPhase.UNKNOWN)
            self._forget_old()
            if len(self._known) >= KNOWN_COUNT_MAX:
                return UploadStatus(UploadPhase.WAITING, reason="too many uploads wait")
            upload = self._known[key] = Upload(ask.intent, ask.generation, ask.cleaning)
            upload.task = asyncio.get_running_loop().create_task(self._run(ask.group, upload))
        upload.asked_ms = self._clock.monotonic_ms()
        if upload.status.changes == ask.seen and upload.status.phase < UploadPhase.DONE:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(ask.wait_ms, WAIT_MS_MAX) / 1000):
                    await upload.changed.wait()
        return upload.status

    def settle(self, group: GroupId, name: str) -> None:
        """The intent is live or abandoned: stop, and forget it."""
        upload = self._known.pop((group, name), None)
        if upload is not None and upload.task is not None:
            upload.task.cancel()

    def _forget_old(self) -> None:
        before = self._clock.monotonic_ms() - KEPT_MS
        for key, upload in list(self._known.items()):
            if upload.asked_ms < before:
                self.settle(*key)

    # ---- one upload ------------------------------------------------------------------------------

    async def _run(self, group: GroupId, upload: Upload) -> None:
        intent = upload.intent
        try:
            if isinstance(intent, IntendReplace):
                await self._rewrite(group, upload, intent)
            else:
                await self._upload(group, upload, intent)
        except (NotHereError, OSError, StorageError, TrailerError, StoreError) as error:
            self._fail(upload, str(error))
        except UnfitBatchError as error:
            if isinstance(intent, Intend):
                self._broker.on_damaged(group, intent)
            self._fail(upload, str(error))
        except Exception as error:  # A task boundary: the leader makes another attempt.
            _log.exception("the upload of %s failed", intent.name)
            self._fail(upload, f"{type(error).__name__}: {error}")

    async def _upload(self, group: GroupId, upload: Upload, intent: Intend) -> None:
        turns = self._turns.setdefault(intent.bucket, asyncio.Semaphore(UPLOADS_PER_BUCKET_MAX))
        find = partial(self._broker.find_source, group, intent)
        source, region = await self._wait_source(upload, find)
        async with turns, self._memory.hold(source.size_bytes):
            made = await self._build(upload, source)
            await self._store(group, upload, made, region)
        size_bytes = made.entry.size_bytes
        self._figures.count_upload(region, intent.bucket, size_bytes)
        upload.move(UploadPhase.DONE, moved=size_bytes, entry=made.entry)

    async def _rewrite(self, group: GroupId, upload: Upload, intent: IntendReplace) -> None:
        find = partial(self._broker.find_run, group, intent, upload.cleaning)
        turns = self._rewrite_turns.setdefault(
            intent.bucket, asyncio.Semaphore(REWRITES_PER_BUCKET_MAX)
        )
        async with turns:
            source, region = await self._wait_source(upload, find)
            async with self._rewrite_memory.hold(source.size_bytes):
                try:
                    made = await self._build(upload, source)
                except UnchangedError:
                    upload.move(UploadPhase.UNCHANGED, mapped_end=source.mapped_end)
                    return
                except (ObjectAbsentError, TrailerError, UnfitBatchError):
                    if source.reading:
                        self._broker.report_missing(intent.bucket, source.reading)
                    raise
                _, failure = await self._store_once(group, upload, made, region, is_put=False)
        if failure is not None:  # It must not keep others waiting: the leader tries again later.
            self._fail(upload, str(failure))
            return
        self._figures.count_rewrite(intent.bucket, len(intent.names), source.size_bytes)
        upload.move(
            UploadPhase.DONE,
            moved=made.entry.size_bytes,
            entry=made.entry,
            mapped_end=source.mapped_end,
        )

    def _fail(self, upload: Upload, reason: str) -> None:
        intent = upload.intent
        self._figures.count_error(intent.bucket)
        _log.warning("the upload of %s to %s failed: %s", intent.name, intent.bucket, reason)
        upload.move(UploadPhase.FAILED, reason=reason)

    async def _wait_source(
        self, upload: Upload, find: Callable[[], tuple[_Source, str] | None]
    ) -> tuple[_Source, str]:
        """Raises NotHereError if this broker does not have the records in time."""
        deadline = self._clock.monotonic_ms() + self._stall_ms
        while (found := self._find(upload, find)) is None:
            if self._clock.monotonic_ms() >= deadline:
                raise NotHereError("this replica is behind")
            await asyncio.sleep(POLL_MS / 1000)
        return found

    def _find(
        self, upload: Upload, find: Callable[[], tuple[_Source, str] | None]
    ) -> tuple[_Source, str] | None:
        known = self._broker.generation(upload.intent.bucket)
        if known > upload.generation:
            raise NotHereError(f"bucket {upload.intent.bucket} was replaced meanwhile")
        return None if known < upload.generation else find()

    async def _build(self, upload: Upload, source: Source) -> SegmentObject:
        upload.move(UploadPhase.RUNNING)
        writer = SegmentWriter(upload.intent.base_offset, upload.intent.end_offset)

        def moved(count: int) -> None:
            upload.move(UploadPhase.RUNNING, moved=count)

        await source.read_into(writer, moved)
        return writer.finish(upload.intent.name)

    async def _store(
        self, group: GroupId, upload: Upload, made: SegmentObject, region: str
    ) -> None:
        """Put it until it can be read back. The leader decides when that takes too long."""
        retry_ms = RETRY_MS_MIN
        is_put = False
        while True:
            is_put, reason = await self._store_once(group, upload, made, region, is_put=is_put)
            if reason is None:
                break
            self._figures.count_error(upload.intent.bucket)
            upload.move(UploadPhase.BLOCKED, reason=str(reason))
            await asyncio.sleep(retry_ms / 1000)
            retry_ms = min(2 * retry_ms, RETRY_MS_MAX)

    async def _store_once(
        self, group: GroupId, upload: Upload, made: SegmentObject, region: str, *, is_put: bool
    ) -> tuple[bool, StoreError | None]:
        """Put it, unless that is done, and read it back: (whether it is put, why it does not
        count yet)."""
        store = self._broker.store(upload.intent.bucket)
        refused: StoreError | None = None
        if not is_put:
            reason, refused = await self._put(group, upload, made, region)
            if reason is not None:
                return False, reason
        missing = await self._try(lambda: _confirm(store, made))
        is_put = not isinstance(missing, ObjectAbsentError | _OtherBytesError)
        if missing is not None:
            return is_put, refused or missing
        return is_put, await self._is_right(upload)

    async def _put(
        self, group: GroupId, upload: Upload, made: SegmentObject, region: str
    ) -> tuple[StoreError | None, StoreError | None]:
        """Put it, if it is the right bucket: (why it was not tried, why the store refused it).
        Whatever a put is answered with, only what is read back counts."""
        intent = upload.intent
        store = self._broker.store(intent.bucket)
        ends = self._broker.ends_of_live(group, intent.bucket)
        reason = await self._is_right(upload, age_ms_max=CONFIRMED_MS)
        reason = reason or await self._try(partial(_recognise, store, ends))
        if isinstance(reason, _LacksAllError):
            for one in ends:
                self._broker.report_missing(intent.bucket, one.name)
        if reason is not None:
            return reason, None
        refused = await self._try(lambda: store.put(made.entry.name, made.parts))
        self._figures.count_sent(region, intent.bucket, made.entry.size_bytes)
        return None, refused

    async def _is_right(self, upload: Upload, *, age_ms_max: int = 0) -> StoreError | None:
        """Why it is not certain that the bucket is the one of its name."""
        bucket, generation = upload.intent.bucket, upload.generation
        confirm = partial(self._broker.confirm_bucket, bucket, generation, age_ms_max=age_ms_max)
        return await self._try(confirm)

    async def _try(self, work: Callable[[], Awaitable[None]]) -> StoreError | None:
        """Why a call to a store failed, or None; it may have been carried out all the same."""
        try:
            async with asyncio.timeout(self._stall_ms / 1000):
                await work()
        except StoreError as error:
            return error
        except TimeoutError:
            return StoreError(f"the store did not answer within {self._stall_ms} ms")
        return None


class _LacksAllError(StoreError):
    """The bucket has neither the first nor the last live object."""


class _OtherBytesError(StoreError):
    """The object is there with other bytes, or a part of it only."""


async def _recognise(store: ObjectStore, ends: Sequence[SegmentEntry]) -> None:
    """Find one of these objects in the bucket, if there are any. Raises StoreError."""
    for entry in reversed(ends):
        try:
            await store.get_range(entry.name, entry.data_bytes, entry.size_bytes)
        except ObjectAbsentError:
            continue
        return
    if ends:
        raise _LacksAllError(
            f"the bucket lacks {ends[-1].name}, which was uploaded before: is its file system "
            "mounted, and is it the same bucket? Nothing more is uploaded until it is there"
        )


async def _confirm(store: ObjectStore, made: SegmentObject) -> None:
    """Read back what can tell the object from any other. Raises StoreError."""
    entry = made.entry
    try:
        found = await store.get_range(entry.name, entry.data_bytes, entry.size_bytes)
    except ObjectAbsentError as error:
        raise ObjectAbsentError("the object is absent after it was put") from error
    if crc32.iscsi(found) != entry.trailer_crc:
        raise _OtherBytesError("the object's trailer was read back with other bytes")
