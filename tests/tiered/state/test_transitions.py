"""Each pair of a phase and a command does what the table says, or nothing (decision 0057)."""

import pytest
from tests.tiered.state.entries import (
    BUCKET,
    Tier,
    abandon,
    entry,
    forget,
    go_live,
    intend,
    retire,
)

from strandline.model.ids import Offset
from strandline.tiered.state.bucket import INTENTS_MAX
from strandline.tiered.state.commands import Command, Replace, Reset
from strandline.tiered.state.encoding import encode
from strandline.tiered.state.tier import BUCKETS_MAX
from strandline.tiered.state.transitions import TRANSITIONS, Phase, Refusal

NAME = "the one"
PREPARED: dict[Phase, tuple[Command, ...]] = {
    Phase.ABSENT: (),
    Phase.INTENDED: (intend(0, 10, name=NAME),),
    Phase.LIVE: (intend(0, 10, name=NAME), go_live(0, 10, name=NAME)),
    Phase.RETIRED: (intend(0, 10, name=NAME), go_live(0, 10, name=NAME), retire(10)),
    Phase.ABANDONED: (intend(0, 10, name=NAME), abandon(NAME)),
}
COMMANDS: tuple[Command, ...] = (
    intend(20, 30, name=NAME),
    go_live(0, 10, name=NAME),
    abandon(NAME),
    retire(10),
    Replace(BUCKET, (NAME,), entry(0, 10, name="another"), 9),
    forget(NAME),
    Reset(BUCKET, 1),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("phase", list(Phase), ids=lambda one: one.name)
def test_every_pair_moves_as_the_table_says_or_is_refused(phase: Phase, command: Command) -> None:
    tier = Tier().done(*PREPARED[phase])
    before = tier.state.checkpoint()
    refusal = tier.apply(command)
    found = tier.state.buckets.get(BUCKET)
    after = Phase.ABSENT if found is None else found.phase_of(NAME)
    known = TRANSITIONS.get((phase, type(command)))
    if phase is Phase.ABSENT and isinstance(command, Replace):
        known = None  # That row is of the object that replaces.
    if known is None:
        assert refusal is not None
        assert after is phase
        assert tier.state.checkpoint().buckets == before.buckets
    else:
        assert refusal is None
        assert after is known


def test_table_names_every_command() -> None:
    assert {command for _, command in TRANSITIONS} == {type(one) for one in COMMANDS}


def test_late_duplicates_change_nothing() -> None:
    commands = [intend(0, 10), go_live(0, 10), intend(10, 20, name="b"), abandon("b"), retire(10)]
    tier = Tier().done(*commands)
    before = tier.state.checkpoint()
    assert [tier.apply(one) for one in commands] == [
        Refusal.WRONG_PHASE,
        Refusal.WRONG_PHASE,
        Refusal.WRONG_PHASE,
        Refusal.WRONG_PHASE,
        Refusal.NOTHING_TO_RETIRE,
    ]
    after = tier.state.checkpoint()
    assert after.buckets == before.buckets
    assert tier.state.refused_count == 5


def test_object_that_does_not_line_up_is_refused() -> None:
    tier = Tier().upload(10)
    assert tier.apply(intend(11, 20)) is Refusal.NOT_IN_LINE
    assert tier.apply(intend(9, 20)) is Refusal.NOT_IN_LINE
    tier.done(intend(10, 20))
    assert tier.apply(intend(10, 20, name="twin")) is Refusal.OVERLAP
    assert tier.apply(go_live(10, 19, name="10-20")) is Refusal.OTHER_RANGE
    assert [one.name for one in tier.state.live(BUCKET)] == ["0-10"]


def test_later_intents_wait_for_earlier_ones() -> None:
    tier = Tier().done(intend(0, 10), intend(10, 20), intend(20, 30))
    tier.done(go_live(0, 10))
    assert tier.apply(go_live(20, 30)) is Refusal.NOT_IN_LINE
    tier.done(abandon("10-20"), intend(10, 20, name="again"), go_live(10, 20, name="again"))
    tier.done(go_live(20, 30))
    assert tier.state.live_end(BUCKET) == 30


def test_records_behind_the_marker_are_never_promised() -> None:
    tier = Tier()
    tier.log_end = Offset(10)
    assert tier.apply(intend(0, 11)) is Refusal.BEYOND_MARKER
    tier.done(intend(0, 10))


def test_next_object_begins_at_or_above_the_last_that_was_live() -> None:
    tier = Tier().upload(10, 20).done(retire(20))
    assert tier.state.live_end(BUCKET) == 20
    assert tier.apply(intend(19, 30)) is Refusal.NOT_IN_LINE
    tier.upload(30, start=25)
    assert tier.state.start(BUCKET) == 25


def test_run_is_replaced_as_one_step() -> None:
    tier = Tier().upload(10, 20, 30, 40)
    merged = entry(10, 30, name="merged", size_bytes=1_500)
    command = Replace(BUCKET, ("10-20", "20-30"), merged, 9)
    for wrong in (("10-20",), ("20-30", "10-20"), ("10-20", "30-40"), ()):
        assert tier.apply(Replace(BUCKET, wrong, merged, 9)) is not None
    tier.done(command)
    assert [one.name for one in tier.state.live(BUCKET)] == ["0-10", "merged", "30-40"]
    assert tier.state.size_bytes(BUCKET) == 3_500
    assert set(tier.state.buckets[BUCKET].removals) == {"10-20", "20-30"}


def test_limits_hold() -> None:
    tier = Tier()
    for at in range(INTENTS_MAX):
        tier.done(intend(at, at + 1))
    assert tier.apply(intend(INTENTS_MAX, INTENTS_MAX + 1)) is Refusal.TOO_MANY
    tier = Tier()
    for at in range(BUCKETS_MAX):
        tier.done(intend(0, 1, bucket=f"b{at}"))
    assert tier.apply(intend(0, 1, bucket="more")) is Refusal.TOO_MANY
    assert len(encode(tier.state.checkpoint())) < 4096


def test_partition_has_so_many_objects_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.tiered.state.tier.OBJECTS_MAX", 3)
    tier = Tier().upload(10, 20).upload(10, bucket="us")
    assert tier.apply(intend(20, 30)) is Refusal.TOO_MANY
    tier.done(retire(10), forget("0-10"), intend(20, 30))
