"""Three copies of a log rot and mend each other, whatever happens to one of them meanwhile.

Source: decision 0007; Protocol-Aware Recovery for Consensus-Based Storage, FAST'18."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from tests.replication.copies import Copy, header_of, make_copies
from tests.storage.storage_world import PowerFailure
from tests.storage.test_log_compaction import CONFIG, DIRECTORY

from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.records.marker import build_configuration_marker, build_epoch_marker
from strandline.records.record import Record, build_batch
from strandline.replication.repair import log_repair
from strandline.storage.layout import LOG
from strandline.storage.log.segment import Segment

SEEDS = 300
KEYS = 8
EPOCH_BATCHES = 9
SEGMENT_BATCHES = 7
ROUNDS = 3


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_repair, "PAUSE_S", 0)


@dataclass
class History:
    """What a seed draws."""

    seed: int
    rng: random.Random = field(init=False)
    copies: list[Copy] = field(init=False)
    fork: Index = field(init=False)
    """From there on the first copy may have what the others have not."""
    may_fail: bool = field(init=False)
    """Whether the power of the first copy fails while it is mended."""
    is_compacted: bool = field(init=False)
    has_rotted_more: bool = False
    """Whether the second copy has lost something while the first one was mended."""

    def __post_init__(self) -> None:
        self.rng = rng = random.Random(self.seed)
        self.may_fail = rng.random() < 0.4
        config = replace(
            CONFIG,
            segment_bytes=rng.choice((900, 2_500, 100_000)),
            index_interval_bytes=rng.choice((1, 200, 600, 4_096)),
        )
        self.is_compacted = rng.random() < 0.7
        if not self.is_compacted:
            config = replace(config, compacted=False, delete=True)
        self.copies = make_copies(config, 3)
        self.later: list[bytes] = []
        self._append_all(rng.choice((10, 50)))
        log = self.copies[0].world.log
        written = self.copies[0].written
        self.newest = dict(written[offset] for offset in sorted(written))
        self.fork = Index(log.last_index + 1)
        if rng.random() < 0.3 and not self.may_fail:
            self._append_apart()
        for copy in self.copies:
            copy.world.flush()
            copy.world.disk.sync()
            copy.world.disk.flush_directory(DIRECTORY)

    def _append_all(self, batches: int) -> None:
        """Entries of a few epochs, of fixed size or not; compacted here and there."""
        rng = self.rng
        has_one_size = rng.random() < 0.7
        for number in range(batches):
            epoch = Epoch(1 + number // EPOCH_BATCHES)
            log = self.copies[0].world.log
            wall_ms = self.copies[0].world.clock.wall
            if number % EPOCH_BATCHES == 0:
                self._append(build_epoch_marker(log.end_offset, epoch, wall_ms))
            if rng.random() < 0.25:
                self._append(build_configuration_marker(log.end_offset, epoch, b"c" * 15, wall_ms))
            self._append(self._draw_batch(log.end_offset, epoch, has_one_size=has_one_size))
            if number % SEGMENT_BATCHES == SEGMENT_BATCHES - 1:
                for copy in self.copies:
                    copy.world.close_segment()
                    if self.is_compacted and rng.random() < 0.3:
                        compact(copy)

    def _append(self, batch: bytes) -> None:
        for copy in self.copies:
            copy.append(batch)

    def _draw_batch(self, offset: Offset, epoch: Epoch, *, has_one_size: bool) -> bytes:
        rng = self.rng
        wall_ms = self.copies[0].world.clock.wall
        records = [
            Record(
                number,
                wall_ms + rng.randrange(50),
                b"k%d" % rng.randrange(KEYS),
                self._draw_value(has_one_size=has_one_size),
            )
            for number in range(rng.choice((1, 1, 2, 3)))
        ]
        return bytes(build_batch(records, base_offset=offset, epoch=epoch))

    def _draw_value(self, *, has_one_size: bool) -> bytes | None:
        rng = self.rng
        if rng.random() < 0.15:
            return None
        return (
            bytes([rng.randrange(256)]) * 20 if has_one_size else rng.randbytes(rng.randrange(60))
        )

    def _append_apart(self) -> None:
        """The first copy has a few entries that were never committed, the others later ones."""
        first, *others = self.copies
        epoch = Epoch(first.world.log.last_epoch + 1)
        self._apart([first], epoch, self.rng.randint(1, 3))
        self.later = self._apart(others, Epoch(epoch + 1), self.rng.randint(1, 4))

    def _apart(self, copies: list[Copy], epoch: Epoch, count: int) -> list[bytes]:
        end = copies[0].world.log.end_offset
        batches = [build_epoch_marker(end, epoch, copies[0].world.clock.wall)]
        for _ in range(count):
            batch = self._draw_batch(end, epoch, has_one_size=True)
            batches.append(batch)
            end = header_of(batch).next_offset
        for copy in copies:
            for batch in batches:
                copy.append(batch)
        return batches

    def rot(self, copy: Copy, count: int) -> None:
        """Flip bits of segments; where the power may fail, of those that were closed and sealed:
        who opens the log looks at all others, and may not go on (decision 0007)."""
        segments = [one for one in self._may_rot(copy) if one.size_bytes]
        for _ in range(count if segments else 0):
            segment = self.rng.choice(segments)
            position = self.rng.randrange(segment.size_bytes)
            copy.world.disk.flip_bit(segment.path(LOG), position, self.rng.randrange(8))

    def _may_rot(self, copy: Copy) -> Sequence[Segment]:
        return copy.rows()[:-1] if self.may_fail else copy.rows()

    def rot_more(self) -> None:
        """The second copy loses something while others are helped."""
        self.has_rotted_more = True
        self.rot(self.copies[1], 1)

    def cut(self) -> None:
        """Cut what was never committed off the first copy, and append what the others have."""
        first = self.copies[0]
        log = first.world.log
        try:
            log.truncate(self.fork)
        except StorageError:
            return  # Tried again once that is mended.
        assert log.last_index == self.fork - 1
        for offset in [one for one in first.written if one >= log.end_offset]:
            del first.written[offset]
        for batch in self.later:
            first.append(batch)
        self.later = []


def compact(copy: Copy) -> None:
    """A whole pass, unless it meets damage."""
    log = copy.world.log
    with contextlib.suppress(StorageError):
        while log.compact(log.end_offset, outlived=Offset(0), bytes_max=10_000):
            copy.world.disk.run()


def roll(copy: Copy) -> None:
    copy.world.clock.advance(copy.world.config.segment_ms)
    copy.world.log.roll_if_due()


def let_go(copy: Copy) -> None:
    segments = copy.rows()
    copy.world.log.remove_segments_before(segments[len(segments) // 3].end_index)


def events(history: History) -> list[Callable[[], None]]:
    """What may happen to the first copy, or to one that helps it, while it is mended."""
    first, second, third = history.copies
    found: list[Callable[[], None]] = [history.rot_more]
    if not history.may_fail:
        found.append(lambda: roll(first))
    if history.later:
        found += [history.cut] * 4
    if history.is_compacted:
        found += [lambda: compact(first), lambda: compact(second), lambda: compact(third)]
    else:
        found.append(lambda: let_go(first))
    return found


async def mend_all(history: History) -> None:
    """Mend copy after copy, the first one with something happening meanwhile."""
    rng = history.rng
    happening = events(history)
    due = {rng.randrange(12): rng.choice(happening) for _ in range(rng.choice((0, 1, 2)))}
    turn = -1

    def meanwhile() -> None:
        nonlocal turn
        turn += 1
        if turn in due:
            due.pop(turn)()

    first = history.copies[0]
    if history.may_fail:
        first.world.disk.fuse = rng.randrange(25)
    try:
        await first.mend(meanwhile)
        if history.later:
            history.cut()
    except PowerFailure:
        first.world.disk.crash(rng)
        first.reopen()
    first.world.disk.fuse = -1
    for _ in range(ROUNDS):
        for copy in history.copies:
            await copy.mend(lambda: None)
            if history.later and copy is first:
                history.cut()


@pytest.mark.parametrize("group", range(10))
def test_copies_that_rot_mend_each_other(group: int) -> None:
    """What was sound stays so; what is mended says what was written, where it was; what is known of
    a segment is true of it. Where nothing is compacted, all that somebody has comes back."""
    for seed in range(group * SEEDS // 10, (group + 1) * SEEDS // 10):
        run(seed)


def run(seed: int) -> None:
    """One history."""
    history = History(seed)
    rng = history.rng
    first = history.copies[0]
    for copy in history.copies:
        history.rot(copy, rng.choice((1, 2, 4) if copy is first else (0, 0, 1, 2)))
        copy.world.clock.advance(rng.choice((0, 20_000)))
    before = [copy.sound() for copy in history.copies]
    asyncio.run(mend_all(history))
    for copy, had in zip(history.copies, before, strict=True):
        log = copy.world.log
        should_have = had
        if not history.is_compacted and not history.may_fail:
            kept_from = history.copies[0].world.log.start_index  # Nobody else lets go of anything.
            should_have = had | {one for one in set().union(*before) if one >= kept_from}
        lost = {one for one in should_have if log.start_index <= one < history.fork} - copy.sound()
        assert history.has_rotted_more or not lost, f"seed {seed}: copy {copy.broker} lost {lost}"
        is_common = not history.later and not log.start_index and log.last_index < history.fork
        copy.check(history.newest if is_common else None)
