"""A bounded run of each target of `make fuzz`, and each input that failed once."""

import time
from pathlib import Path
from random import Random

import pytest
from fuzz.access_targets import bounded
from fuzz.mutations import damaged
from fuzz.run import CORPUS
from fuzz.targets import TARGETS

INPUTS = 150
FAILED_ONCE = sorted(CORPUS.glob("*.bin"))


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_is_read_or_refused(name: str) -> None:
    read, draw = TARGETS[name]
    random = Random(20_261_129)
    for _ in range(INPUTS):
        read(damaged(draw(random), random, draw(random)))


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_well_formed_is_read(name: str) -> None:
    read, draw = TARGETS[name]
    random = Random(7)
    for _ in range(INPUTS):
        read(draw(random))


@pytest.mark.parametrize("path", FAILED_ONCE, ids=lambda path: path.name)
def test_what_failed_once_is_read_or_refused(path: Path) -> None:
    read, _ = TARGETS[path.name.partition("-")[0]]
    read(path.read_bytes())


def test_a_mistake_in_a_parser_is_found() -> None:
    def read(data: bytes) -> None:
        data[data[0]]

    random = Random(1)
    draw = TARGETS["payload"][1]
    with pytest.raises(IndexError):
        for _ in range(INPUTS):
            read(damaged(draw(random), random))


def test_a_read_that_costs_much_each_time_is_found() -> None:
    @bounded
    def read(data: bytes) -> None:
        begun = time.thread_time()
        while time.thread_time() - begun < 0.11:
            pass

    with pytest.raises(AssertionError, match="7 bytes took"):
        read(b"n" * 7)


def test_a_read_that_costs_much_once_is_not() -> None:
    reads = []

    @bounded
    def read(data: bytes) -> None:
        reads.append(data)
        begun = time.thread_time()
        while len(reads) == 1 and time.thread_time() - begun < 0.11:
            pass

    read(b"n")
    assert len(reads) == 2
