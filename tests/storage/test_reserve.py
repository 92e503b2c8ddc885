"""Only vital writes may use the reserve of a full disk.

Source: decision 0024."""

import pytest
from tests.storage.storage_world import ForgetfulDisk, ManualClock

from strandline.base.disk import is_full
from strandline.storage.reserve import RETRY_MS, Reserve

PATH = "/data/reserve"
SIZE = 1_000
CAPACITY = 200_000


class World:
    """A disk with a reserve, and a file that fills it."""

    def __init__(self, capacity: int | None = CAPACITY) -> None:
        self.clock = ManualClock()
        self.disk = ForgetfulDisk()
        self.disk.make_directories("/data")
        self.disk.capacity = capacity
        self.reserve = self.new()

    def new(self, size_bytes: int = SIZE) -> Reserve:
        """What a process has that starts now."""
        reserve = Reserve(self.clock, self.disk, "/data", size_bytes=size_bytes)
        reserve.start()
        return reserve

    def fill(self, *, left: int = 0) -> None:
        """Leave so many bytes."""
        file = self.disk.open("/data/other", create=True)
        file.truncate(0)
        file.truncate(self.disk.free_bytes("/data") - left)

    def kept(self) -> int:
        """How much is kept."""
        return self.disk.open(PATH).size() if self.disk.exists(PATH) else 0

    def refuses(self, *, markers: bool = False) -> bool:
        """Whether everybody else is refused, with what says that the disk is full."""
        try:
            self.reserve.check(is_marker=markers)
        except OSError as error:
            assert is_full(error)
            return True
        return False


def test_while_space_is_reserved_no_write_is_refused() -> None:
    world = World()
    assert world.kept() == SIZE
    world.fill()
    assert world.disk.free_bytes("/data") == 0
    assert not world.refuses()


def test_released_space_is_not_for_ordinary_logs() -> None:
    world = World()
    world.fill()
    assert world.reserve.release("somebody")
    assert world.disk.free_bytes("/data") == SIZE
    assert world.refuses()
    assert not world.reserve.release("somebody")


def test_markers_may_use_half_of_the_released_space() -> None:
    world = World()
    assert not world.refuses(markers=True)
    world.fill()
    world.reserve.release("somebody")
    used = world.disk.open("/data/used", create=True)
    used.truncate(SIZE // 2)
    assert not world.refuses(markers=True)
    used.truncate(SIZE // 2 + 1)
    assert world.refuses(markers=True)


def test_it_is_taken_back_as_soon_as_as_much_is_left_beside_it_and_not_before() -> None:
    world = World()
    world.fill()
    world.reserve.release("somebody")
    world.disk.open("/data/used", create=True).truncate(10)
    world.disk.open("/data/other").truncate(CAPACITY - 2 * SIZE)
    world.clock.advance(RETRY_MS)
    world.clock.advance(RETRY_MS)
    assert world.refuses()
    assert world.kept() == 0
    world.disk.remove("/data/used")
    world.clock.advance(RETRY_MS)
    assert not world.refuses()
    assert world.kept() == SIZE
    assert world.reserve.release("somebody")


def test_it_is_taken_back_where_no_file_can_be_created() -> None:
    """File systems run out of inodes, too: everybody was refused for the want of one."""
    world = World()
    world.fill()
    world.reserve.release("somebody")
    world.disk.full.add("create")
    world.disk.open("/data/other").truncate(0)
    world.clock.advance(RETRY_MS)
    assert not world.refuses()
    assert world.kept() == SIZE


def test_a_process_that_starts_finds_what_was_kept_before() -> None:
    world = World()
    world.fill(left=SIZE)
    world.reserve = world.new()
    assert world.kept() == SIZE
    assert world.disk.free_bytes("/data") == SIZE
    assert not world.refuses()


def test_a_start_on_a_full_disk_releases_the_space() -> None:
    world = World()
    world.fill()
    world.reserve = world.new()
    assert world.disk.free_bytes("/data") == SIZE
    assert world.refuses()


def test_a_disk_of_little_space_keeps_little() -> None:
    assert World(capacity=20_000).kept() == 200


@pytest.mark.parametrize("size_bytes", [0, SIZE // 2])
def test_what_is_kept_follows_the_configuration(size_bytes: int) -> None:
    world = World()
    world.reserve = world.new(size_bytes)
    assert world.kept() == size_bytes
    assert world.disk.exists(PATH) == bool(size_bytes)


def test_without_a_reserve_no_write_is_refused() -> None:
    world = World()
    world.reserve = world.new(0)
    world.fill()
    assert not world.reserve.release("somebody")
    assert not world.refuses()


def test_a_disk_that_cannot_reserve_space_refuses_no_write() -> None:
    world = World()
    world.disk.remove(PATH)
    world.disk.failing.add("allocate")
    world.reserve = world.new()
    assert not world.refuses()
    assert not world.reserve.release("somebody")


@pytest.mark.parametrize("is_released", [True, False])
def test_nothing_is_done_once_the_process_stops(is_released: bool) -> None:
    world = World()
    world.fill()
    if is_released:
        world.reserve.release("somebody")
    world.reserve.stop()
    assert not world.reserve.release("somebody")
    world.disk.remove(PATH)
    world.disk.remove("/data/other")
    world.clock.advance(10 * RETRY_MS)
    assert world.kept() == 0
