"""Every sequence of commands at a small scope, from any leaders in any order, keeps the invariants.

Why:    a deposed leader's markers may be committed late, and twice: the state must hold against
        every order, not only against the orders that uploaders mean.
How:    breadth first over the states that commands from a small set lead to; states that differ
        only in counters are one.
Source: decision 0057."""

from collections import deque
from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest
from tests.tiered.state.entries import (
    BUCKET,
    FAR,
    abandon,
    entry,
    forget,
    go_live,
    intend,
    intend_replace,
    retire,
)

from strandline.model.ids import Epoch, Index, Offset
from strandline.tiered.state.bucket import BucketState
from strandline.tiered.state.commands import (
    BucketImage,
    Command,
    MarkClean,
    Replace,
    Reset,
    Retire,
)
from strandline.tiered.state.encoding import decode, encode
from strandline.tiered.state.tier import TierState
from strandline.tiered.state.transitions import TRANSITIONS, Phase, Refusal

Key = bytes


class NoGapNoOverlap:
    """Live objects lie end to end, and no two intents have a record in common."""

    def check(self, _: BucketState, after: BucketState, __: Command) -> None:
        assert all(a.end_offset == b.base_offset for a, b in pairwise(after.live))
        intents = sorted(after.intents, key=lambda one: one.base_offset)
        assert all(a.end_offset <= b.base_offset for a, b in pairwise(intents))


class EndNeverGoesBack:
    """No object is live twice; none is after a later one has been, except in an emptied bucket."""

    def check(self, before: BucketState, after: BucketState, _: Command) -> None:
        assert after.end_offset >= before.end_offset or before.is_emptied
        assert after.retired_before >= before.retired_before
        if after.live:
            assert after.live[-1].end_offset == after.end_offset
            assert after.live[0].base_offset >= after.retired_before


class EmptiedCoversNothing:
    """A bucket that was emptied holds nothing, and gave up no record that it did not before."""

    def check(self, before: BucketState, after: BucketState, command: Command) -> None:
        if after.is_emptied:
            assert not after.live
            assert after.next_offset == after.retired_before == before.retired_before


class OneObjectOnePhase:
    """A retired or abandoned object is none that live data needs."""

    def check(self, _: BucketState, after: BucketState, __: Command) -> None:
        live = [one.name for one in after.live]
        names = [*live, *(one.name for one in after.intents), *after.removals]
        assert len(set(names)) == len(names)
        phases = dict.fromkeys(live, Phase.LIVE)
        phases |= dict.fromkeys((one.name for one in after.intents), Phase.INTENDED)
        if after.replacement is not None:
            names.append(after.replacement.name)
            phases[after.replacement.name] = Phase.REPLACING
        assert len(set(names)) == len(names)
        for one in after.removals.values():
            phases[one.name] = Phase.RETIRED if one.was_live else Phase.ABANDONED
        assert {name: after.phase_of(name) for name in names} == phases
        assert after.size_bytes == sum(one.size_bytes for one in after.live)


class LiveDataStays:
    """Only a Retire, or a Reset, makes records that were live unreachable."""

    def check(self, before: BucketState, after: BucketState, command: Command) -> None:
        if not isinstance(command, Retire | Reset):
            assert offsets_of(before) <= offsets_of(after)


class ResetForgetsAll:
    """Of the bucket that was replaced nothing counts, and nothing is deleted of the new one."""

    def check(self, before: BucketState, after: BucketState, command: Command) -> None:
        assert after.generation >= before.generation
        if isinstance(command, Reset):
            assert after.generation > before.generation
            assert not after.live and not after.intents and not after.removals
            assert after.is_emptied
            assert after.replacement is None
            assert after.clean_before == 0


class ReplacedRunIsLive:
    """What a replacement retires was live the moment before, and the new object has its range."""

    def check(self, before: BucketState, after: BucketState, command: Command) -> None:
        if isinstance(command, Replace):
            assert before.replacement is not None
            assert before.has_run(
                command.names, command.entry.base_offset, command.entry.end_offset
            )
            assert offsets_of(before) == offsets_of(after)
            assert set(after.removals) - set(before.removals) == set(command.names)


class CleanMarkStaysWithTheObjects:
    """A mark goes forward while there are objects, and ends with a bucket that is emptied."""

    def check(self, before: BucketState, after: BucketState, command: Command) -> None:
        assert after.clean_before <= after.end_offset
        if after.is_emptied:
            assert after.clean_before == 0
        else:
            assert after.clean_before >= before.clean_before


INVARIANTS = (
    ReplacedRunIsLive(),
    CleanMarkStaysWithTheObjects(),
    NoGapNoOverlap(),
    EndNeverGoesBack(),
    EmptiedCoversNothing(),
    OneObjectOnePhase(),
    LiveDataStays(),
    ResetForgetsAll(),
)


def offsets_of(bucket: BucketState) -> set[int]:
    return {at for one in bucket.live for at in range(one.base_offset, one.end_offset)}


def commands(names: str, end: int) -> Iterator[Command]:
    """All commands about these names and the offsets [0, end)."""
    ranges = [(base, to) for base in range(end) for to in range(base + 1, end + 1)]
    for name in names:
        for base, to in ranges:
            yield intend(base, to, name=name)
            yield go_live(base, to, name=name)
        yield abandon(name)
        yield forget(name)
    for before in range(1, end + 1):
        yield retire(before)
        yield Retire(BUCKET, Offset(before), 9, empties=True)
        yield MarkClean(BUCKET, Offset(before))
    yield Reset(BUCKET, 1)
    for name in names:
        for first in names:
            for run in ((first,), *((first, second) for second in names)):
                for to in (1, end):
                    yield intend_replace(*run, base=0, end=to, name=name)
                    yield Replace(BUCKET, run, entry(0, to, name=name), 9)


def key_of(image: BucketImage) -> Key:
    """The state without its counters."""
    return repr(msgspec.structs.replace(image, counters=())).encode()


def explore(names: str, end: int, *, states_max: int) -> int:
    """How many states were found; each transition of each of them keeps the invariants."""
    universe = list(commands(names, end))
    start = BucketState().image(BUCKET)
    found = {key_of(start)}
    left = deque([start])
    while left:
        image = left.popleft()
        before = BucketState.restored(image)
        assert before.image(BUCKET) == image
        own = key_of(image)
        for command in universe:
            after = BucketState.restored(image)
            refusal = after.apply(command, FAR)
            reached = after.image(BUCKET)
            key = key_of(reached)
            if refusal is not None:
                assert reached == image, f"{command} was refused, and changed something"
                continue
            assert key != own, f"{command} changed nothing, and was not refused"
            for invariant in INVARIANTS:
                invariant.check(before, after, command)
            if key not in found:
                found.add(key)
                left.append(reached)
        assert len(found) <= states_max, "the scope is larger than the test says"
    return len(found)


def test_every_order_of_commands_at_a_small_scope() -> None:
    assert explore("ab", 2, states_max=2_000) > 200


@pytest.mark.long
def test_every_order_of_commands_at_a_larger_scope() -> None:
    assert explore("abc", 3, states_max=50_000) > 2_000


@pytest.mark.parametrize("mistake", ["run stays live", "run not live"])
def test_planted_mistake_in_a_replacement_is_found(
    mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mistake == "run not live":
        monkeypatch.setattr(BucketState, "has_run", lambda self, *_: bool(self.live))
    else:
        monkeypatch.setitem(TRANSITIONS, (Phase.LIVE, Replace), Phase.LIVE)
    with pytest.raises(AssertionError):
        explore("ab", 2, states_max=2_000)


class _SkipsTheLine(BucketState):
    """A planted mistake: an object may begin anywhere behind the last one."""

    def _is_in_line(self, base: Offset) -> bool:
        return base >= self.end_offset


def test_planted_mistake_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BucketState, "_is_in_line", _SkipsTheLine._is_in_line)
    with pytest.raises(AssertionError):
        explore("abc", 3, states_max=50_000)


@pytest.mark.parametrize("cut", range(11))
def test_state_from_a_checkpoint_goes_on_like_the_one_from_the_beginning(cut: int) -> None:
    log: list[Command] = [
        intend(0, 1, name="a"),
        go_live(0, 1, name="a"),
        intend(1, 2, name="b"),
        go_live(0, 1, name="a"),
        abandon("b"),
        intend(1, 2, name="c"),
        go_live(1, 2, name="c"),
        intend_replace("a", "c", base=0, end=2, name="d"),
        Replace(BUCKET, ("a", "c"), entry(0, 2, name="d"), 5),
        MarkClean(BUCKET, Offset(2)),
        intend_replace("d", base=0, end=2, name="e"),
        retire(2),
        forget("a", "b"),
    ]
    whole, later = TierState(), TierState()
    for at, command in enumerate(log):
        if at == cut:
            found = decode(encode(whole.checkpoint()))
            later = TierState.restored(found)  # type: ignore[arg-type]
        refusals: set[Refusal | None] = set()
        for state in (whole, later) if at >= cut else (whole,):
            refusals.add(state.apply(Index(at), Epoch(1), command, log_end=FAR))
        assert len(refusals) == 1
    assert encode(later.checkpoint()) == encode(whole.checkpoint())
