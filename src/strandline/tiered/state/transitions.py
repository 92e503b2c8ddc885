"""Which command may move an object of a bucket from which phase to which: a table.

How:    absent --Intend--> intended --GoLive--> live --Retire, Replace--> retired --Forget--> absent
                           intended --Abandon--> abandoned --Forget--> absent
        absent --IntendReplace--> replacing --Replace--> live, in the place of others
                                  replacing --Abandon--> abandoned
        any of these --Reset--> absent: another bucket has taken the place of this one
        A pair that has no row is refused.
Source: decision 0057."""

from enum import Enum

from strandline.tiered.state.commands import (
    Abandon,
    Forget,
    GoLive,
    Intend,
    IntendReplace,
    Replace,
    Reset,
    Retire,
)


class Phase(Enum):
    """How far an object has come, by its name."""

    ABSENT = "absent"
    """Never heard of, or gone."""
    INTENDED = "intended"
    REPLACING = "replacing"
    LIVE = "live"
    RETIRED = "retired"
    ABANDONED = "abandoned"


class Refusal(Enum):
    """Why a command changes nothing."""

    WRONG_PHASE = "the object is in no phase from which this command leads"
    NOT_IN_LINE = "the range does not begin where the last one ends"
    OVERLAP = "another intent has a part of the range"
    OTHER_RANGE = "the object has not the range of its intent, or of the run that it replaces"
    OTHER_EPOCHS = "the object has not the epochs of the run that it replaces"
    BEYOND_MARKER = "the range does not end before the marker, so it may not be committed"
    MALFORMED = "a field is out of its bounds"
    TOO_MANY = "the bucket has as many of these as it may have"
    NOT_EMPTY = "other objects or intents of the bucket remain, so it would not be empty"
    OLD_GENERATION = "the bucket was replaced as often before, or more often"
    NOT_FORWARD = "the mark does not go forward, or goes beyond the live objects"
    NOTHING_TO_RETIRE = "no live object ends at or below the offset"


TRANSITIONS: dict[tuple[Phase, type], Phase] = {
    (Phase.ABSENT, Intend): Phase.INTENDED,
    (Phase.INTENDED, GoLive): Phase.LIVE,
    (Phase.INTENDED, Abandon): Phase.ABANDONED,
    (Phase.LIVE, Retire): Phase.RETIRED,
    (Phase.LIVE, Replace): Phase.RETIRED,
    (Phase.ABSENT, IntendReplace): Phase.REPLACING,
    (Phase.REPLACING, Replace): Phase.LIVE,
    (Phase.REPLACING, Abandon): Phase.ABANDONED,
    (Phase.RETIRED, Forget): Phase.ABSENT,
    (Phase.ABANDONED, Forget): Phase.ABSENT,
    (Phase.ABSENT, Reset): Phase.ABSENT,
    (Phase.INTENDED, Reset): Phase.ABSENT,
    (Phase.REPLACING, Reset): Phase.ABSENT,
    (Phase.LIVE, Reset): Phase.ABSENT,
    (Phase.RETIRED, Reset): Phase.ABSENT,
    (Phase.ABANDONED, Reset): Phase.ABSENT,
}
"""{(the phase before, the command): the phase after}; the only ones."""
