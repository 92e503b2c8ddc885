"""After a power failure a log is a prefix of what it was, and holds everything that was flushed.

Why:    beside the model test, which does everything: many short lives that end badly, where most of
        the damage is done, with truncations and small segments."""

import random

import pytest
from tests.storage.log_model import (
    ModelLog,
    append_batches,
    check_equal,
    random_batch,
    random_marker,
)
from tests.storage.storage_world import ForgetfulDisk, ManualClock, PowerFailure

from strandline.model.ids import Index
from strandline.storage.config import LogConfig
from strandline.storage.log.log import Log
from strandline.storage.recovery import head_summary

DIRECTORY = "/data/topic-0.1"
LIVES = 6
STEPS_MAX = 14


class Life:
    """One log on one disk that loses its power again and again."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = ForgetfulDisk()
        self.disk.make_directories("/data")
        self.clock = ManualClock()
        self.config = LogConfig(
            segment_bytes=self.rng.choice((400, 1500)),
            index_interval_bytes=200,
            retention_ms=-1,
            preallocate=self.rng.random() < 0.5,
        )
        self.model = ModelLog()
        self.epoch = 1
        self.durable_index = -1
        self.log = self.open()

    def open(self) -> Log:
        return Log.open(self.disk, DIRECTORY, config=self.config, clock=self.clock)

    def step(self) -> None:
        assert self.log.flushed_index <= max(self.durable_index, self.log.start_index - 1)
        self.clock.advance(2_000)
        action = self.rng.random()
        if action < 0.5:
            self.append()
        elif action < 0.7:
            self.flush()
        elif action < 0.8:
            self.disk.run()
            self.clock.run()
        elif action < 0.95:
            self.truncate()
        elif action < 0.98:
            self.log.remove_segments_before(self.log.end_offset)
            self.model.cut_start(self.log.start_index)
        else:
            self.log.close()
            self.durable_index = self.model.end_index - 1
            self.forget_callbacks()
            self.log = self.open()

    def append(self) -> None:
        batches = []
        for _ in range(self.rng.randint(1, 3)):
            if self.rng.random() < 0.2 or self.begins_epoch:
                data, configuration = random_marker(self.model, self.rng, epoch=self.epoch)
                batches.append(self.model.add(data, configuration))
            else:
                data = random_batch(self.model, self.rng, epoch=self.epoch)
                batches.append(self.model.add(data))
        append_batches(self.log, batches, self.rng)

    @property
    def begins_epoch(self) -> bool:
        """Each one begins with a marker, as leaders write it."""
        last = self.model.batches[-1].header if self.model.batches else None
        return last is None or last.partition_leader_epoch != self.epoch

    def flush(self) -> None:
        def done(result: Index | OSError) -> None:
            assert isinstance(result, int)
            self.durable_index = max(self.durable_index, result)

        self.log.flush_soon(done)

    def truncate(self) -> None:
        if self.model.batches:
            back = self.rng.randint(1, min(6, len(self.model.batches)))
            first_index = self.model.batches[-back].first_index
            self.epoch += 1
            self.durable_index = min(self.durable_index, first_index - 1)
            self.log.truncate(Index(first_index))
            self.model.truncate(first_index)

    def be_killed(self) -> None:
        """What the process did is seen by the next one, and on no platter yet."""
        self.forget_callbacks()
        self.disk.kill()
        self.log = self.open()
        assert self.log.last_index >= self.durable_index
        self.model.truncate(self.log.last_index + 1)
        self.model.cut_start(self.log.start_index)
        check_equal(self.log, self.model)
        self.durable_index = self.model.end_index - 1

    def lose_power(self) -> None:
        self.forget_callbacks()
        self.disk.crash(self.rng)
        if self.rng.random() < 0.3:
            self.disk.fuse = self.rng.randint(0, 10)
        try:
            self.log = self.open()
        except PowerFailure:
            self.disk.crash(self.rng)
            self.log = self.open()
        self.disk.fuse = -1
        assert self.log.last_index >= self.durable_index, "lost what was flushed"
        self.model.truncate(self.log.last_index + 1)
        self.model.cut_start(self.log.start_index)
        check_equal(self.log, self.model)
        self.durable_index = self.model.end_index - 1

    def forget_callbacks(self) -> None:
        self.disk.flushes.clear()
        self.clock.forget()


@pytest.mark.parametrize("group", range(4))
def test_what_one_flush_of_many_logs_did_not_reach_is_not_durable(group: int) -> None:
    """A process is killed, its log is opened with others, and the power fails before the flush."""
    for seed in range(group * 50, group * 50 + 50):
        life = Life(seed)
        for _ in range(STEPS_MAX):
            life.step()
        life.forget_callbacks()  # The process is killed; what it wrote is still there.
        Log.open(
            life.disk, DIRECTORY, config=life.config, clock=life.clock, defer_flush=True
        ).give_up(OSError("the power fails"))
        life.lose_power()


def test_closed_segments_are_sealed_once_the_flush_of_many_logs_is_done() -> None:
    life = Life(0)
    while len(life.disk.list_directory(DIRECTORY)) < 4:
        life.append()
    life.forget_callbacks()
    log = Log.open(life.disk, DIRECTORY, config=life.config, clock=life.clock, defer_flush=True)
    files = life.disk.list_directory(DIRECTORY)
    assert not [file for file in files if file.endswith(".summary")]
    log.mark_found_durable()
    files = life.disk.list_directory(DIRECTORY)
    closed = [file for file in files if file.endswith(".log")][:-1]
    assert closed
    assert [file for file in files if file.endswith(".summary")] == [
        file.replace(".log", ".summary") for file in closed
    ]


@pytest.mark.parametrize("group", range(8))
def test_nothing_flushed_is_lost_and_nothing_cut_comes_back(group: int) -> None:
    for seed in range(group * 25, group * 25 + 25):
        live(seed)


@pytest.mark.parametrize("group", range(4))
def test_the_same_with_a_summary_of_the_head_at_every_flush(
    group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_summary, "REST_BYTES_MIN", 1)
    monkeypatch.setattr(head_summary, "REST_SHARE", 1 << 30)
    for seed in range(group * 25, group * 25 + 25):
        live(seed)


@pytest.mark.parametrize("group", range(8))
def test_the_names_that_a_killed_process_left_are_durable_before_they_are_relied_on(
    group: int,
) -> None:
    """Found in a simulated cluster: a process was killed between the creation of a segment and
    the flush of its name; the next one wrote into it, acknowledged that, and lost its power."""
    for seed in range(group * 25, group * 25 + 25):
        live(seed, killed_share=0.5)


def live(seed: int, *, killed_share: float = 0.0) -> None:
    """One disk's story."""
    life = Life(seed)
    for _ in range(LIVES):
        try:
            for _ in range(life.rng.randint(1, STEPS_MAX)):
                life.step()
            if life.rng.random() < 0.5:
                life.disk.fuse = life.rng.randint(0, 12)
                for _ in range(STEPS_MAX):
                    life.step()
        except PowerFailure:
            pass
        if killed_share and life.rng.random() < killed_share:
            life.be_killed()
            life.append()
            life.flush()
            life.disk.run()
        life.lose_power()
