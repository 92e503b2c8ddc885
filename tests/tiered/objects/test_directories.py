"""A directory as a bucket: what an acknowledged object survives."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from tests.tiered.objects.opened import Opener, error_of, names, run

from strandline.tiered.objects.directory import LEFTOVER_S, MARK, TEMPORARY
from strandline.tiered.objects.store import ObjectAbsentError, StoreError


@pytest.mark.parametrize("call", ["put", "create"])
def test_a_write_is_flushed_before_it_has_its_name_and_its_directories_after(
    opener: Opener, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """obstore's directory store renames without any flush: an acknowledged object could vanish."""
    steps: list[str] = []
    fsync, replace, link = os.fsync, os.replace, os.link

    def note_fsync(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        steps.append(f"flush {'file' if TEMPORARY in path else Path(path).name}")
        fsync(descriptor)

    async def main() -> None:
        store = opener.directory()
        await store.put("first", [b"1"])
        monkeypatch.setattr(os, "fsync", note_fsync)
        monkeypatch.setattr(os, "replace", lambda *a: (steps.append("name"), replace(*a)))
        monkeypatch.setattr(os, "link", lambda *a: (steps.append("name"), link(*a)))
        if call == "put":
            await store.put("x/y/z", [b"1"])
        else:
            await store.create("x/y/z", b"1")

    run(main())
    assert steps[:2] == ["flush file", "name"]
    assert sorted(steps[2:]) == ["flush bucket", "flush x", "flush y"]


def test_a_write_whose_flush_fails_is_an_error_and_leaves_nothing(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    async def main() -> None:
        store = opener.directory()
        await store.put("first", [b"1"])
        monkeypatch.setattr(os, "fsync", fail)
        error = await error_of(store.put("second", [b"1"]))
        assert type(error) is StoreError and "Input/output error" in str(error)
        assert await names(store) == ["first"]
        assert os.listdir(opener.root / "bucket" / TEMPORARY) == []

    run(main())


def test_a_full_disk_is_an_error(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, *args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    async def main() -> None:
        store = opener.directory()
        await store.put("first", [b"1"])
        monkeypatch.setattr(Path, "touch", fail)
        assert "No space left" in str(await error_of(store.put("second", [b"1"])))

    run(main())


def test_nothing_is_absent_from_a_directory_that_is_not_mounted(opener: Opener) -> None:
    async def main() -> None:
        store = opener.directory()
        await store.put("a", [b"1"])
        assert isinstance(await error_of(store.get("b")), ObjectAbsentError)
        root = opener.root / "bucket"
        shutil.rmtree(root)
        root.mkdir()
        for work in (store.get("a"), names(store), store.put("c", [b"1"]), store.delete(["a"])):
            error = await error_of(work)
            assert isinstance(error, StoreError) and not isinstance(error, ObjectAbsentError)
            assert "is its file system mounted?" in str(error)

    run(main())


def test_what_a_dead_broker_left_goes_after_a_day(opener: Opener) -> None:
    temporary = opener.root / "bucket" / TEMPORARY
    temporary.mkdir(parents=True)
    for name, age_s in (("old", LEFTOVER_S + 60), ("new", 60)):
        (temporary / name).write_bytes(b"1")
        moment = (temporary / name).stat().st_mtime - age_s
        os.utime(temporary / name, (moment, moment))
    store = opener.directory()
    run(store.put("a", [b"1"]))
    assert os.listdir(temporary) == ["new"]


def test_reading_makes_no_bucket(opener: Opener) -> None:
    """Where a file system is not mounted, its place would become an empty bucket."""
    store = opener.directory()
    with pytest.raises(StoreError, match="is its file system mounted") as raised:
        run(names(store))
    assert not isinstance(raised.value, ObjectAbsentError)
    with pytest.raises(StoreError, match="is its file system mounted") as raised:
        run(store.get("a"))
    assert not isinstance(raised.value, ObjectAbsentError)
    assert not (opener.root / "bucket").exists()


def test_hidden_files_are_no_objects(opener: Opener) -> None:
    async def main() -> list[str]:
        store = opener.directory()
        await store.put("a", [b"1"])
        return await names(store)

    assert run(main()) == ["a"]
    assert sorted(os.listdir(opener.root / "bucket")) == [MARK, TEMPORARY, "a"]


def test_the_loop_goes_on_while_a_disk_is_slow(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush that hangs ends with the deadline, and other work goes on meanwhile."""
    import threading

    released = threading.Event()
    fsync = os.fsync

    def hang(descriptor: int) -> None:
        released.wait(60)
        fsync(descriptor)

    async def main() -> None:
        store = opener.directory(timeout_ms=2_000)
        await store.put("a", [b"1"])
        monkeypatch.setattr(os, "fsync", hang)
        writing = asyncio.ensure_future(error_of(store.put("b", [b"1"])))
        assert await store.get("a") == b"1"
        assert "no answer in 2000 ms" in str(await writing)
        released.set()

    run(main())
