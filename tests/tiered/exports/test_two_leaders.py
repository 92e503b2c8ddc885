"""ExportNeverGoesBack: two leaders export at once, one of them deposed, one step at a time.

Why:    a paused or deposed leader goes on where it stopped. Whatever the order of the steps, the
        newest export of the bucket never says less than it said before.
How:    each call of the store is two steps: until it takes effect, and until its answer arrives.
        Each leader runs for a while, at most twice, with every length of each run. After each step
        a reader looks. What an export truly is stands in its topic's configuration.
Source: decisions 0057 and 0061."""

from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from types import coroutine
from typing import Any

import msgspec
import pytest
from tests.tiered.exports.states import PLACE, state
from tests.tiered.exports.stores import MemoryStore

from strandline.model.ids import Epoch
from strandline.tiered.exports.export import Export
from strandline.tiered.exports.exporter import Exporter
from strandline.tiered.exports.names import ExportNumber, parse_number
from strandline.tiered.exports.old import remove_old
from strandline.tiered.exports.reading import read_newest
from strandline.tiered.objects.store import ObjectExistsError, StoreError


def true(first: int, last: int, number: tuple[int, int]) -> Export:
    made = state(first, last, number=number)
    return msgspec.structs.replace(made, topic_config={"is": str(made.number)})


DEPOSED = [true(0, 2, (3, 20)), true(0, 3, (3, 30))]
"""What the leader of epoch 3 knew; it stops anywhere."""
SUCCESSOR = [true(0, 4, (4, 41)), true(1, 5, (4, 52))]
AFTER_LOSS = [true(0, 2, (1 << 20, 22)), true(0, 4, (1 << 20, 43))]
"""After a declared loss: the log is shorter, and the epoch is higher."""

Objects = dict[str, tuple[bytes, int]]


@coroutine
def step() -> Iterator[None]:
    yield


async def lead(objects: Objects, states: list[Export], name: str, writer: type[Exporter]) -> None:
    attempts = count()
    store = MemoryStore(objects, gate=lambda: step())
    one = writer(
        store,
        PLACE,
        draw_attempt=lambda: f"{name}{next(attempts)}",
        report=lambda _: None,
        grace_ms=0,
    )
    for each in states:
        try:
            await one.write(each)
            await remove_old(store, PLACE, grace_ms=0)
        except (StoreError, ObjectExistsError):
            continue


Truth = tuple[ExportNumber, int] | None
_truths: dict[frozenset[tuple[str, bytes]], Truth] = {}


def truth(objects: Objects) -> Truth:
    """What a reader takes as the newest export: what it truly is, and where it ends."""
    contents = frozenset((name, data) for name, (data, _) in objects.items())
    if contents not in _truths:
        try:
            read_newest(MemoryStore(objects), PLACE).send(None)
        except StopIteration as end:
            found = end.value
            _truths[contents] = None
            if found is not None:
                number = parse_number(found.export.topic_config["is"])
                assert number is not None
                _truths[contents] = (number, found.export.end_offset)
    return _truths[contents]


class ExportNeverGoesBack:
    """The newest export is never a lower one than before, and within one past of the log it never
    ends before."""

    def __init__(self) -> None:
        self._last: Truth = None
        self._seen: frozenset[str] = frozenset()

    def look(self, objects: Objects) -> None:
        names = frozenset(objects)
        if names == self._seen:
            return
        self._seen = names
        found = truth(objects)
        if self._last is not None:
            assert found is not None, "an export was there, and none is left"
            assert found[0] >= self._last[0], (found, self._last)
            is_same_past = found[0].epoch >> 20 == self._last[0].epoch >> 20
            assert not is_same_past or found[1] >= self._last[1], (found, self._last)
        self._last = found


def play(order: list[bool], sides: list[Callable[[Objects], Coroutine[Any, Any, None]]]) -> int:
    """Step the two sides in this order, then both to their ends; how many steps the order had."""
    objects: Objects = {}
    running = [side(objects) for side in sides]
    invariant = ExportNeverGoesBack()
    alive = [True, True]
    taken = 0
    rest = [False, True] * 1_000
    for is_second in (*order, *rest):
        if not any(alive):
            break
        side = int(is_second)
        if not alive[side]:
            continue
        try:
            running[side].send(None)
        except StopIteration:
            alive[side] = False
        taken += 1
        invariant.look(objects)
    assert not any(alive)
    found = truth(objects)
    assert found is not None
    assert found[0].epoch >= SUCCESSOR[0].number.epoch
    return taken


def steps_of(states: list[Export], writer: type[Exporter]) -> int:
    one = lead({}, states, "a", writer)
    for taken in count():
        try:
            one.send(None)
        except StopIteration:
            return taken
    raise AssertionError


def switches(first: int, second: int) -> Iterator[list[bool]]:
    """Orders in which the two sides take turns: each side runs for a while, at most twice."""
    for a in range(first + 1):
        for b in range(second + 1):
            for c in range(first - a + 1):
                yield [False] * a + [True] * b + [False] * c + [True] * (second - b)


Side = Callable[[Objects], Coroutine[Any, Any, None]]


def both(later: list[Export], writer: type[Exporter]) -> list[Side]:
    return [
        lambda objects: lead(objects, DEPOSED, "a", writer),
        lambda objects: lead(objects, later, "b", writer),
    ]


@pytest.mark.parametrize("later", [SUCCESSOR, AFTER_LOSS], ids=["elected", "after a loss"])
def test_whatever_the_order_of_their_steps_the_newest_export_never_says_less(
    later: list[Export],
) -> None:
    first, second = steps_of(DEPOSED, Exporter), steps_of(later, Exporter)
    assert first > 10
    assert second > 10
    tried = 0
    for order in switches(first, second):
        play(order, both(later, Exporter))
        tried += 1
    assert tried > 500


class OwnEpoch(Exporter):
    """With the mistake: the index alone decides which export is the newest."""

    async def write(self, state: Export) -> bool:
        number = ExportNumber(Epoch(4), state.number.index)
        return await super().write(msgspec.structs.replace(state, number=number))


def test_numbers_without_the_entrys_epoch_go_back() -> None:
    """The planted mistake is found: after a loss the log is shorter, and so are the numbers."""
    with pytest.raises(AssertionError):
        for order in switches(12, 12):
            play(order, both(AFTER_LOSS, OwnEpoch))
