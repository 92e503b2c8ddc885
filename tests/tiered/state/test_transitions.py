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
    intend_replace,
    retire,
)

from strandline.model.ids import Offset
from strandline.tiered.state.bucket import INTENTS_MAX
from strandline.tiered.state.commands import (
    Command,
    IntendReplace,
    MarkClean,
    Replace,
    Reset,
    Retire,
)
from strandline.tiered.state.encoding import encode
from strandline.tiered.state.tier import BUCKETS_MAX
from strandline.tiered.state.transitions import TRANSITIONS, Phase, Refusal

NAME = "the one"
PREPARED: dict[Phase, tuple[Command, ...]] = {
    Phase.ABSENT: (),
    Phase.INTENDED: (intend(0, 10, name=NAME),),
    Phase.REPLACING: (
        intend(0, 10, name="old"),
        go_live(0, 10, name="old"),
        intend_replace("old", base=0, end=10, name=NAME),
    ),
    Phase.LIVE: (intend(0, 10, name=NAME), go_live(0, 10, name=NAME)),
    Phase.RETIRED: (intend(0, 10, name=NAME), go_live(0, 10, name=NAME), retire(10)),
    Phase.ABANDONED: (intend(0, 10, name=NAME), abandon(NAME)),
}
COMMANDS: tuple[Command, ...] = (
    intend(20, 30, name=NAME),
    go_live(0, 10, name=NAME),
    abandon(NAME),
    retire(10),
    intend_replace("old", base=0, end=10, name=NAME),
    Replace(BUCKET, ("old",), entry(0, 10, name=NAME), 9),
    forget(NAME),
    Reset(BUCKET, 1),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("phase", list(Phase), ids=lambda one: one.name)
def test_every_pair_moves_as_the_table_says_or_is_refused(phase: Phase, command: Command) -> None:
    tier = Tier().done(*PREPARED[phase])
    if phase is Phase.ABSENT and isinstance(command, IntendReplace):
        tier.done(*PREPARED[Phase.REPLACING][:2])  # What it replaces.
    before = tier.state.checkpoint()
    refusal = tier.apply(command)
    found = tier.state.buckets.get(BUCKET)
    after = Phase.ABSENT if found is None else found.phase_of(NAME)
    known = TRANSITIONS.get((phase, type(command)))
    if phase is Phase.LIVE and isinstance(command, Replace):
        known = None  # That row is of the objects that it replaces.
    if phase is Phase.REPLACING and isinstance(command, Retire):
        known = phase  # It takes the object that shall be replaced.
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


def test_replaced_object_retires() -> None:
    tier = Tier().upload(10).done(intend_replace("0-10", base=0, end=10, name="new"))
    tier.done(Replace(BUCKET, ("0-10",), entry(0, 10, name="new"), 9))
    assert tier.state.buckets[BUCKET].phase_of("0-10") is Phase.RETIRED


def test_run_is_replaced_as_one_step() -> None:
    tier = Tier().upload(10, 20, 30, 40)
    merged = entry(10, 30, name="merged", size_bytes=1_500)
    run = ("10-20", "20-30")
    assert tier.apply(Replace(BUCKET, run, merged, 9)) is Refusal.WRONG_PHASE, "without an intent"
    for wrong in (("10-20",), ("20-30", "10-20"), ("10-20", "30-40"), ("never",)):
        refused = intend_replace(*wrong, base=10, end=30, name="merged")
        assert tier.apply(refused) is Refusal.OTHER_RANGE
    tier.done(intend_replace(*run, base=10, end=30, name="merged"))
    more = intend_replace("0-10", base=0, end=10, name="more")
    assert tier.apply(more) is Refusal.TOO_MANY
    assert tier.apply(go_live(10, 30, name="merged")) is Refusal.WRONG_PHASE
    assert tier.apply(Replace(BUCKET, ("10-20",), merged, 9)) is Refusal.OTHER_RANGE
    assert tier.apply(Replace(BUCKET, run, entry(10, 40, name="merged"), 9)) is Refusal.OTHER_RANGE
    other = entry(10, 30, name="merged", epochs=((1, 10), (2, 20)))
    assert tier.apply(Replace(BUCKET, run, other, 9)) is Refusal.OTHER_EPOCHS
    tier.done(Replace(BUCKET, run, merged, 9))
    assert [one.name for one in tier.state.live(BUCKET)] == ["0-10", "merged", "30-40"]
    assert tier.state.size_bytes(BUCKET) == 3_500
    assert set(tier.state.buckets[BUCKET].removals) == set(run)
    tier.done(more)


def test_run_that_retention_has_cut_is_not_replaced() -> None:
    """A deposed leader's `Replace` may come behind a `Retire`: it would bring records back."""
    tier = Tier().upload(10, 20, 30)
    tier.done(intend_replace("0-10", "10-20", base=0, end=20, name="new"), retire(10))
    late = Replace(BUCKET, ("0-10", "10-20"), entry(0, 20, name="new"), 9)
    assert tier.apply(late) is Refusal.OTHER_RANGE
    assert tier.apply(Retire(BUCKET, Offset(30), 9, empties=True)) is Refusal.NOT_EMPTY
    tier.done(abandon("new"), Retire(BUCKET, Offset(30), 9, empties=True))
    assert tier.apply(late) is Refusal.WRONG_PHASE


def test_bucket_is_clean_only_below_what_it_has() -> None:
    tier = Tier().upload(10, 20, 30)
    assert tier.state.clean_before == 0
    assert tier.apply(MarkClean(BUCKET, Offset(31))) is Refusal.NOT_FORWARD
    tier.done(MarkClean(BUCKET, Offset(25)))
    assert tier.apply(MarkClean(BUCKET, Offset(25))) is Refusal.NOT_FORWARD
    assert tier.state.clean_before == 25
    tier.done(intend(0, 10, bucket="us", name="us"))
    assert tier.state.clean_before == 0, "its upload may bring old values"
    tier.done(abandon("us", bucket="us"))
    assert tier.state.clean_before == 25
    tier.done(Retire(BUCKET, Offset(30), 9, empties=True))
    assert tier.state.clean_before is None
    tier.done(forget("0-10", "10-20", "20-30")).upload(10, start=0)
    assert tier.state.clean_before == 0, "it has begun anew"


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
