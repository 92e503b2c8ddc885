"""Every byte of an object is compared with the log's entry; no answer proves nothing."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import pytest
from tests.tiered.exports.stores import MemoryStore

from strandline.model.ids import Offset
from strandline.records.record import Record, build_batch
from strandline.tiered.collection import verify
from strandline.tiered.collection.verify import Checked, Verdict, verify_entry
from strandline.tiered.objects.store import StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.writer import SegmentWriter

NAME = "c/t/0/x.segment"
Change = Callable[[bytes], bytes]


@dataclass
class FlakyStore(MemoryStore):
    """`changes`: what happens to the next ranges."""

    changes: list[Change | None] = field(default_factory=list)

    def __init__(self) -> None:
        super().__init__()
        self.changes = []
        self.reads: list[tuple[int, int]] = []

    async def get_range(self, name: str, start: int, end: int) -> bytes:
        self.reads.append((start, end))
        data = await super().get_range(name, start, end)
        change = self.changes.pop(0) if self.changes else None
        return data if change is None else change(data)


def made(batches: int = 300) -> tuple[FlakyStore, SegmentEntry]:
    """An object of about 3 MB."""
    writer = SegmentWriter(Offset(0), Offset(batches))
    for offset in range(batches):
        value = random.Random(offset).randbytes(10_000)
        writer.add(bytes(build_batch([Record(0, 5, b"k", value)], base_offset=offset, epoch=1)))
    finished = writer.finish(NAME)
    store = FlakyStore()
    store.objects[NAME] = (b"".join(finished.parts), 0)
    return store, finished.entry


def check(store: FlakyStore, entry: SegmentEntry) -> Checked:
    return asyncio.run(verify_entry(store, entry))


def flip(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def test_a_sound_object_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "READ_BYTES", 2 << 20)
    store, entry = made()
    assert check(store, entry) == Checked(entry, Verdict.SOUND, "", entry.size_bytes)
    assert sorted(store.reads)[-1][1] == entry.size_bytes
    assert sum(end - start for start, end in store.reads) == entry.size_bytes
    assert max(end - start for start, end in store.reads) <= 2 << 20


@pytest.mark.parametrize("seed", range(10))
def test_any_wrong_bit_is_found(seed: int) -> None:
    store, entry = made(120)
    data = bytearray(store.objects[NAME][0])
    at = random.Random(seed).randrange(len(data))
    data[at] ^= 1 << random.Random(seed).randrange(8)
    store.objects[NAME] = (bytes(data), 0)
    found = check(store, entry)
    assert found.verdict is Verdict.DAMAGED
    assert "checksum" in found.reason


def test_what_was_wrong_on_the_wire_is_read_again() -> None:
    store, entry = made(120)
    store.changes = [flip, None, flip]
    assert check(store, entry).verdict is Verdict.SOUND
    assert not store.changes


@pytest.mark.parametrize(
    "change",
    [
        {"base_offset": Offset(1)},
        {"end_offset": Offset(121)},
        {"digest": bytes(32)},
        {"epochs": ((2, 0),)},
    ],
    ids=str,
)
def test_an_object_of_another_range_is_damaged(change: dict[str, object]) -> None:
    store, entry = made(120)
    found = check(store, msgspec.structs.replace(entry, **change))
    assert found.verdict is Verdict.DAMAGED
    assert "its trailer has" in found.reason


def test_an_object_that_is_not_there_is_missing() -> None:
    store, entry = made(10)
    store.objects.clear()
    assert check(store, entry).verdict is Verdict.MISSING


def test_an_error_of_the_store_says_nothing_of_the_object() -> None:
    store, entry = made(10)

    def fail(operation: str, name: str) -> None:
        raise StoreError("503")

    store.fail = fail
    found = check(store, entry)
    assert (found.verdict, found.reason) == (Verdict.UNREADABLE, "503")


@pytest.mark.parametrize("kept", (0, 1, 100, -1))
def test_an_object_that_is_cut_is_damaged(kept: int) -> None:
    store, entry = made(10)
    store.objects[NAME] = (store.objects[NAME][0][:kept], 0)
    found = check(store, entry)
    assert found.verdict is Verdict.DAMAGED
    assert f"had {entry.size_bytes} when it was uploaded" in found.reason


def test_an_answer_that_is_cut_says_nothing_of_a_whole_object() -> None:
    store, entry = made(10)

    def fail(operation: str, name: str) -> None:
        if operation != "list":
            raise StoreError("5 bytes came")

    store.fail = fail
    assert check(store, entry).verdict is Verdict.UNREADABLE
