"""The uploader: one object for each intent, confirmed by reading it back, whatever the store says.

Source: decision 0059."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import Any

import pytest
from tests.tiered.exports.stores import MemoryStore

from strandline.broker.tiering import uploads as uploads_module
from strandline.broker.tiering.figures import TierFigures
from strandline.broker.tiering.memory_budget import MemoryBudget
from strandline.broker.tiering.messages import (
    UploadAsk,
    UploadPhase,
    UploadStatus,
    decode_ask,
    decode_status,
    encode_message,
)
from strandline.broker.tiering.sources import BucketSource, LocalSource, Moved, Source
from strandline.broker.tiering.uploads import NotHereError, Uploads
from strandline.model.ids import BrokerId, GroupId, Offset
from strandline.network.loop_clock import LoopClock
from strandline.records.record import Record, build_batch
from strandline.storage.log.reads import FileRange
from strandline.tiered.objects.store import ObjectStore, StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import Trailer
from strandline.tiered.segments.writer import SegmentWriter, UnfitBatchError
from strandline.tiered.state.commands import Intend

GROUP = GroupId(7)


def _batches(count: int, *, size: int = 100) -> bytes:
    return b"".join(
        bytes(build_batch([Record(0, at, b"k", b"v" * size)], base_offset=at, epoch=1))
        for at in range(count)
    )


class Batches:
    """A source with these bytes."""

    def __init__(self, data: bytes) -> None:
        self.size_bytes = len(data)
        self._data = data

    async def read_into(self, writer: SegmentWriter, moved: Moved) -> None:
        writer.add(self._data)
        moved(len(self._data))


class World:
    """An uploader, its store and its source."""

    def __init__(self, *, memory_bytes_max: int = 1 << 20, stall_ms: int = 60_000) -> None:
        self.objects = MemoryStore()
        self.data = _batches(10)
        self.lookups: list[Callable[[], tuple[Source, str] | None]] = []
        self.damaged: list[str] = []
        self.missing: set[str] = set()
        self.buckets_generation = 0
        self.is_wrong = False
        self.confirmations = 0
        self.figures = TierFigures()
        self.uploads = Uploads(
            clock=LoopClock(asyncio.get_running_loop()),
            broker=self,
            rewrite_memory=MemoryBudget(1 << 20),
            memory=MemoryBudget(memory_bytes_max),
            figures=self.figures,
            stall_ms=stall_ms,
        )

    def find_source(self, group: GroupId, intent: Intend) -> tuple[Source, str] | None:
        assert group == GROUP
        if self.lookups:
            return self.lookups.pop(0)()
        return Batches(self.data), "east"

    def generation(self, bucket: str) -> int:
        return self.buckets_generation

    async def confirm_bucket(self, bucket: str, generation: int, *, age_ms_max: int) -> None:
        self.confirmations += 1
        if self.is_wrong or generation != self.buckets_generation:
            raise StoreError("it is another bucket")

    def report_missing(self, bucket: str, name: str) -> None:
        self.missing.add(name)

    def on_damaged(self, group: GroupId, intent: Intend) -> None:
        self.damaged.append(intent.name)

    def ends_of_live(self, group: GroupId, bucket: str) -> Sequence[SegmentEntry]:
        return ()

    def store(self, bucket: str) -> ObjectStore:
        return self.objects

    async def ask(
        self, name: str = "a", *, may_start: bool = True, end: int = 10, seen: int = -1
    ) -> UploadStatus:
        intent = Intend("east", name, Offset(0), Offset(end), BrokerId(1))
        ask = UploadAsk(GROUP, intent, may_start, 5_000, seen)
        return decode_status(await self.uploads.on_call(BrokerId(2), encode_message(ask)))

    async def finish(self, name: str = "a", *, end: int = 10) -> UploadStatus:
        """Ask until it is over."""
        status = await self.ask(name, end=end)
        while status.phase < UploadPhase.DONE:
            status = await self.ask(name, end=end, seen=status.changes)
        return status


def run(scenario: Callable[[World], Coroutine[Any, Any, None]], **world: int) -> None:
    """Run a scenario in a new world."""

    async def go() -> None:
        made = World(**world)
        await scenario(made)
        made.uploads.stop()

    asyncio.run(go())


async def settle() -> None:
    """Let all tasks run as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "RETRY_MS_MIN", 1)
    monkeypatch.setattr(uploads_module, "POLL_MS", 1)


def test_an_upload_ends_with_an_entry_of_an_object_that_can_be_read() -> None:
    async def scenario(world: World) -> None:
        status = await world.finish()
        assert status.phase is UploadPhase.DONE
        assert status.entry is not None
        stored = world.objects.objects["a"][0]
        assert stored[: status.entry.data_bytes] == world.data
        Trailer.parse(stored[status.entry.data_bytes :], crc=status.entry.trailer_crc)
        assert world.figures.uploaded_bytes == {("east", "east"): len(stored)}
        assert await world.finish() == status, "the result stays until the intent is settled"
        assert [one for one, _ in world.objects.calls].count("put") == 1

    run(scenario)


def test_an_uploader_that_restarted_says_that_it_knows_nothing() -> None:
    async def scenario(world: World) -> None:
        status = await world.ask(may_start=False)
        assert status.phase is UploadPhase.UNKNOWN
        assert not world.objects.calls

    run(scenario)


def test_a_put_that_failed_and_was_applied_counts_by_what_is_read_back() -> None:
    async def scenario(world: World) -> None:
        put = world.objects.put

        async def apply_and_fail(name: str, parts: Any) -> None:
            await put(name, parts)
            raise StoreError("the connection was lost")

        world.objects.put = apply_and_fail  # type: ignore[method-assign]
        assert (await world.finish()).phase is UploadPhase.DONE
        assert [one for one, _ in world.objects.calls].count("put") == 1

    run(scenario)


def test_an_object_that_is_absent_though_put_is_put_again_under_the_same_name() -> None:
    async def scenario(world: World) -> None:
        put, lost = world.objects.put, [1, 2]

        async def lose(name: str, parts: Any) -> None:
            await put(name, parts)
            if lost:
                lost.pop()
                del world.objects.objects[name]

        world.objects.put = lose  # type: ignore[method-assign]
        assert (await world.finish()).phase is UploadPhase.DONE
        assert [one for one, _ in world.objects.calls].count("put") == 3
        assert list(world.objects.objects) == ["a"]
        assert world.figures.error_counts == {"east": 2}

    run(scenario)


def test_a_store_that_refuses_all_is_reported_as_blocking_and_makes_no_progress() -> None:
    async def scenario(world: World) -> None:
        def refuse(operation: str, name: str) -> None:
            raise StoreError("503")

        world.objects.fail = refuse
        status = await world.ask()
        while status.phase is not UploadPhase.BLOCKED:
            status = await world.ask(seen=status.changes)
        assert status.reason == "503"
        later = await world.ask(seen=status.changes)
        assert later.moved_bytes == status.moved_bytes
        world.objects.fail = lambda operation, name: None
        assert (await world.finish()).phase is UploadPhase.DONE

    run(scenario)


def test_a_put_that_hangs_ends_at_its_deadline_and_is_tried_again() -> None:
    async def scenario(world: World) -> None:
        put, hung = world.objects.put, [1]

        async def hang(name: str, parts: Any) -> None:
            if hung:
                hung.pop()
                await asyncio.Event().wait()
            await put(name, parts)

        world.objects.put = hang  # type: ignore[method-assign]
        assert (await world.finish()).phase is UploadPhase.DONE
        assert world.figures.error_counts == {"east": 1}

    run(scenario, stall_ms=20)


def test_a_log_that_is_behind_is_waited_for() -> None:
    async def scenario(world: World) -> None:
        world.lookups = [lambda: None, lambda: None]
        assert (await world.finish()).phase is UploadPhase.DONE
        assert not world.lookups

    run(scenario)


def test_records_that_are_not_here_or_are_damaged_end_the_attempt() -> None:
    async def scenario(world: World) -> None:
        def absent() -> tuple[Source, str] | None:
            raise NotHereError("gone")

        world.lookups = [absent]
        status = await world.finish("gone")
        assert (status.phase, status.reason) == (UploadPhase.FAILED, "gone")
        world.data = world.data[:-1] + b"\xff"
        status = await world.finish("damaged")
        assert status.phase is UploadPhase.FAILED
        assert world.damaged == ["damaged"]
        assert not world.objects.objects

    run(scenario)


def test_memory_bounds_how_many_uploads_run_at_once() -> None:
    async def scenario(world: World) -> None:
        gate = asyncio.Event()
        world.objects.gate = gate.wait  # type: ignore[assignment]
        for name in "abc":
            await world.ask(name)
        await settle()
        phases = [one.status.phase for one in world.uploads.known.values()]
        assert phases.count(UploadPhase.RUNNING) == 1
        gate.set()
        for name in "abc":
            assert (await world.finish(name)).phase is UploadPhase.DONE

    run(scenario, memory_bytes_max=2_000)


def test_a_hung_bucket_takes_no_more_than_its_turns() -> None:
    async def scenario(world: World) -> None:
        gate = asyncio.Event()
        world.objects.gate = gate.wait  # type: ignore[assignment]
        for name in "abcd":
            await world.ask(name)
        await settle()
        phases = [one.status.phase for one in world.uploads.known.values()]
        assert phases.count(UploadPhase.RUNNING) == uploads_module.UPLOADS_PER_BUCKET_MAX

    run(scenario)


def test_a_settled_intent_is_forgotten_and_its_upload_ends() -> None:
    async def scenario(world: World) -> None:
        world.objects.gate = asyncio.Event().wait  # type: ignore[assignment]
        await world.ask()
        await settle()
        task = world.uploads.known[GROUP, "a"].task
        world.uploads.settle(GROUP, "a")
        assert task is not None
        await asyncio.wait([task])
        assert task.cancelled()
        assert (await world.ask(may_start=False)).phase is UploadPhase.UNKNOWN

    run(scenario)


def test_a_bucket_is_repaired_from_a_part_of_another_ones_object() -> None:
    async def scenario(world: World) -> None:
        world.data = _batches(60, size=70_000)  # Over four chunks.
        entry = (await world.finish("whole", end=60)).entry
        assert entry is not None
        writer = SegmentWriter(Offset(13), Offset(41))
        moved: list[int] = []
        await BucketSource(world.objects, entry).read_into(writer, moved.append)
        made = writer.finish("part")
        low, high = (world.data.index(_batch_at(at)) for at in (13, 41))
        assert b"".join(made.parts[:-1]) == world.data[low:high]
        assert sum(moved) < entry.data_bytes

    def _batch_at(at: int) -> bytes:
        return bytes(build_batch([Record(0, at, b"k", b"v" * 70_000)], base_offset=at, epoch=1))

    run(scenario, memory_bytes_max=10 << 20)


def test_a_log_is_read_in_pieces_that_cut_batches_and_are_smaller_than_some() -> None:
    async def scenario(world: World) -> None:
        moved: list[int] = []
        for size in (70_000, 300_000, 1_300_000):
            data = _batches(9, size=size)
            with TemporaryFile() as stored:
                stored.write(data)
                stored.flush()
                file: Any = SimpleNamespace(path="log", pread=partial(_pread, stored.fileno()))
                middle = len(data) // 9 * 4
                parts = [FileRange(file, 0, middle), FileRange(file, middle, len(data) - middle)]
                writer = SegmentWriter(Offset(0), Offset(9))
                await LocalSource(parts, None).read_into(writer, moved.append)
            assert b"".join(writer.finish("x").parts[:-1]) == data
            assert sum(moved) == len(data)
            moved.clear()

    run(scenario)


def test_a_log_that_was_cut_meanwhile_is_no_object() -> None:
    async def scenario(world: World) -> None:
        data = _batches(9, size=70_000)[:-10]
        file: Any = SimpleNamespace(path="log", pread=lambda length, at: data[at : at + length])
        writer = SegmentWriter(Offset(0), Offset(9))
        for length in (len(data), len(data) + 10):
            with pytest.raises(UnfitBatchError, match="cut"):
                await LocalSource([FileRange(file, 0, length)], None).read_into(
                    SegmentWriter(Offset(0), Offset(9)), lambda _: None
                )
        assert writer.next_offset == 0

    run(scenario)


def _pread(descriptor: int, length: int, position: int) -> bytes:
    return os.pread(descriptor, length, position)


def test_asks_are_read_as_they_were_written() -> None:
    intent = Intend("east", "a", Offset(0), Offset(10), BrokerId(1))
    ask = UploadAsk(GROUP, intent, may_start=True, wait_ms=1, seen=2)
    assert decode_ask(encode_message(ask)) == ask


def test_what_a_store_says_of_a_refused_put_is_the_reason() -> None:
    async def scenario(world: World) -> None:
        def refuse(operation: str, name: str) -> None:
            if operation == "put":
                raise StoreError("No space left on device")

        world.objects.fail = refuse
        status = await world.ask()
        while status.phase is not UploadPhase.BLOCKED:
            status = await world.ask(seen=status.changes)
        assert status.reason == "No space left on device", "not that the object is absent"

    run(scenario)


def test_nothing_is_put_into_a_bucket_that_is_not_the_one_of_its_name() -> None:
    async def scenario(world: World) -> None:
        world.is_wrong = True
        status = await world.ask()
        while status.phase is not UploadPhase.BLOCKED:
            status = await world.ask(seen=status.changes)
        assert status.reason == "it is another bucket"
        assert not world.objects.objects
        world.is_wrong = False
        assert (await world.finish()).phase is UploadPhase.DONE

    run(scenario)


def test_what_was_put_counts_once_the_bucket_is_the_right_one_after_it() -> None:
    async def scenario(world: World) -> None:
        put = world.objects.put

        async def put_while_it_changes(name: str, parts: Sequence[Any]) -> None:
            await put(name, parts)
            world.is_wrong = True

        world.objects.put = put_while_it_changes  # type: ignore[method-assign]
        status = await world.ask()
        while status.phase is not UploadPhase.BLOCKED:
            status = await world.ask(seen=status.changes)
        assert status.reason == "it is another bucket"
        world.is_wrong = False
        assert (await world.finish()).phase is UploadPhase.DONE
        assert [one for one, _ in world.objects.calls].count("put") == 1, "it was there already"

    run(scenario)


def test_an_uploader_that_has_not_heard_of_a_replacement_waits_and_one_that_has_gives_up() -> None:
    async def scenario(world: World) -> None:
        intent = Intend("east", "a", Offset(0), Offset(10), BrokerId(1))
        ask = UploadAsk(GROUP, intent, True, 20, 0, generation=1)
        status = await world.uploads.status(ask)
        assert status.phase is UploadPhase.WAITING
        await settle()
        assert not world.objects.objects
        world.buckets_generation = 1
        while status.phase < UploadPhase.DONE:
            again = UploadAsk(GROUP, intent, True, 5_000, status.changes, generation=1)
            status = await world.uploads.status(again)
        assert status.phase is UploadPhase.DONE
        status = await world.finish("b")
        assert status.phase is UploadPhase.FAILED
        assert "replaced" in status.reason

    run(scenario)
