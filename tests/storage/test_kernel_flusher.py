"""Flushes by the kernel, on real files and real loops. Source: storage.kernel_flusher."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from strandline.storage.disk import kernel_flusher
from strandline.storage.disk.descriptor import Descriptor
from strandline.storage.disk.flusher import FlushDone
from strandline.storage.disk.kernel_flusher import FILES_MAX, KernelFlusher
from strandline.storage.disk.real_disk import RealDisk

LIMIT_S = 30
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]

Scenario = Callable[[KernelFlusher], Awaitable[None]]


@pytest.fixture(autouse=True)
def kernel() -> None:
    """Without it a thread flushes: see `test_real_disk.py`."""
    loop = asyncio.new_event_loop()
    flusher = KernelFlusher.create(loop)
    if flusher is not None:
        flusher.close()
    loop.close()
    if flusher is None:
        pytest.skip("this kernel, or its sandbox, does not offer native AIO (2026-11-22)")


def run(
    scenario: Scenario,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> None:
    async def main() -> None:
        flusher = KernelFlusher.create(asyncio.get_running_loop())
        assert flusher is not None
        async with asyncio.timeout(LIMIT_S):
            await scenario(flusher)
        flusher.close()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


def descriptor(path: Path) -> Descriptor:
    return Descriptor(str(path), os.O_RDWR | os.O_CREAT)


class Answers:
    """Who was answered, in order, and with what."""

    def __init__(self) -> None:
        self.all: list[tuple[str, OSError | None]] = []
        self._changed = asyncio.Event()

    def of(self, name: str) -> FlushDone:
        def done(error: OSError | None) -> None:
            self.all.append((name, error))
            self._changed.set()

        return done

    async def wait(self, count: int) -> None:
        while len(self.all) < count:
            self._changed.clear()
            await self._changed.wait()


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_a_flush_is_answered_by_the_loop_and_never_at_once(
    tmp_path: Path, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def scenario(flusher: KernelFlusher) -> None:
        answers = Answers()
        file = descriptor(tmp_path / "file")
        for _ in range(20):
            os.write(file.number, b"x")
            before = len(answers.all)
            assert flusher.add(file, answers.of("a"))
            assert len(answers.all) == before
            await answers.wait(before + 1)
        assert answers.all == [("a", None)] * 20

    run(scenario, loop_factory)


def count_flushes(flusher: KernelFlusher, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files were submitted each time."""
    counts: list[int] = []
    invoke = flusher._invoke

    def counted(call: int, *arguments: object) -> int:
        if call == flusher._submit:
            counts.append(arguments[1].value)  # type: ignore[attr-defined]
        return invoke(call, *arguments)

    monkeypatch.setattr(flusher, "_invoke", counted)
    return counts


def test_who_asks_in_one_pass_shares_a_flush_and_who_asks_during_it_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(flusher: KernelFlusher) -> None:
        counts = count_flushes(flusher, monkeypatch)
        answers = Answers()
        file = descriptor(tmp_path / "file")
        for _ in range(3):
            assert flusher.add(file, answers.of("first"))
        while not counts:
            await asyncio.sleep(0)
        for _ in range(50):
            assert flusher.add(file, answers.of("later"))
        await answers.wait(53)
        assert [name for name, _ in answers.all] == [*["first"] * 3, *["later"] * 50]
        assert counts == [1, 1]

    run(scenario)


def test_what_is_asked_for_during_a_round_is_the_next_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(flusher: KernelFlusher) -> None:
        counts = count_flushes(flusher, monkeypatch)
        answers = Answers()
        files = [descriptor(tmp_path / str(number)) for number in range(5)]
        assert flusher.add(files[0], answers.of("first"))
        while not counts:
            await asyncio.sleep(0)
        for file in files:
            assert flusher.add(file, answers.of("second"))
        await answers.wait(6)
        assert [name for name, _ in answers.all] == ["first", *["second"] * 5]
        assert counts == [1, 5]

    run(scenario)


def test_all_files_of_a_pass_are_submitted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(flusher: KernelFlusher) -> None:
        counts = count_flushes(flusher, monkeypatch)
        answers = Answers()
        for number in range(5):
            assert flusher.add(descriptor(tmp_path / str(number)), answers.of("a"))
        await answers.wait(5)
        assert counts == [5]

    run(scenario)


def test_files_are_flushed_side_by_side_up_to_a_bound(tmp_path: Path) -> None:
    async def scenario(flusher: KernelFlusher) -> None:
        answers = Answers()
        files = [descriptor(tmp_path / str(number)) for number in range(FILES_MAX + 1)]
        taken = [flusher.add(file, answers.of(str(n))) for n, file in enumerate(files)]
        assert taken == [True] * FILES_MAX + [False]
        await answers.wait(FILES_MAX)
        assert {name for name, _ in answers.all} == {str(n) for n in range(FILES_MAX)}
        assert flusher.add(files[-1], answers.of("room again"))
        await answers.wait(FILES_MAX + 1)

    run(scenario)


def test_a_file_that_is_closed_meanwhile_is_flushed_all_the_same(tmp_path: Path) -> None:
    async def scenario(flusher: KernelFlusher) -> None:
        answers = Answers()
        file = descriptor(tmp_path / "file")
        os.write(file.number, b"x")
        assert flusher.add(file, answers.of("a"))
        assert flusher.add(file, answers.of("b"))
        del file
        await answers.wait(2)
        assert answers.all == [("a", None), ("b", None)]

    run(scenario)


def test_a_failed_flush_reaches_everybody_who_waited_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(flusher: KernelFlusher) -> None:
        invoke = flusher._invoke

        def fail(call: int, *arguments: object) -> int:
            count = invoke(call, *arguments)
            if call == flusher._getevents and count:
                number, iocb, _, _ = kernel_flusher._EVENT.unpack_from(flusher._events)
                kernel_flusher._EVENT.pack_into(flusher._events, 0, number, iocb, -errno.EIO, 0)
                monkeypatch.setattr(flusher, "_invoke", invoke)
            return count

        monkeypatch.setattr(flusher, "_invoke", fail)
        answers = Answers()
        file = descriptor(tmp_path / "file")
        assert flusher.add(file, answers.of("first"))
        while not flusher._under_way:
            await asyncio.sleep(0)
        assert flusher.add(file, answers.of("second"))
        await answers.wait(2)
        (_, error), second = answers.all
        assert error is not None
        assert error.errno == errno.EIO
        assert second == ("second", None)

    run(scenario)


def test_what_the_kernel_does_not_flush_is_flushed_here_and_then_left_to_others(
    tmp_path: Path,
) -> None:
    async def scenario(flusher: KernelFlusher) -> None:
        os.mkfifo(tmp_path / "pipe")
        answers = Answers()
        assert flusher.add(descriptor(tmp_path / "pipe"), answers.of("pipe"))
        assert flusher.add(descriptor(tmp_path / "file"), answers.of("file"))
        await answers.wait(2)
        (_, error), file = answers.all
        assert error is not None
        assert error.errno == errno.EINVAL
        assert file == ("file", None)
        assert not flusher.add(descriptor(tmp_path / "other"), answers.of("other"))

    run(scenario)


def test_a_kernel_that_is_busy_is_asked_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(flusher: KernelFlusher) -> None:
        invoke = flusher._invoke

        def refuse(call: int, *arguments: object) -> int:
            if call == flusher._submit:
                monkeypatch.setattr(flusher, "_invoke", invoke)
                raise BlockingIOError(errno.EAGAIN, "no room")
            return invoke(call, *arguments)

        monkeypatch.setattr(flusher, "_invoke", refuse)
        answers = Answers()
        file = descriptor(tmp_path / "file")
        assert flusher.add(file, answers.of("first"))
        await answers.wait(1)
        assert flusher.add(file, answers.of("second"))
        await answers.wait(2)
        assert answers.all == [("first", None), ("second", None)]

    run(scenario)


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_a_disk_that_is_closed_has_flushed_what_was_asked_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    flushed: list[int] = []
    flush = os.fdatasync

    def count(number: int) -> None:
        flushed.append(number)
        flush(number)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        disk = RealDisk(loop.call_soon_threadsafe, loop)
        assert disk._kernel is not None
        file = disk.open(str(tmp_path / "file"), create=True)
        file.pwrite((b"x",), 0)
        answers = Answers()
        disk.flush_soon(file, answers.of("a"))
        while not disk._kernel._under_way:
            await asyncio.sleep(0)
        disk.flush_soon(file, answers.of("b"))
        monkeypatch.setattr(os, "fdatasync", count)
        number = file.fileno()
        disk.close()
        assert flushed == [number], "for who asked second; the first flush was the kernel's"

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
