"""What TIER markers in a group's log say.

How:    intent --> live --> retired --> gone;  intent --> abandoned;  a run of live --> replaced
        A command that does not fit the state at its place in the log is refused there, by every
        replica alike, and changes nothing.
Source: decision 0057."""

import msgspec

from strandline.model.ids import BrokerId, Offset
from strandline.tiered.segments.entry import SegmentEntry


class Intend(msgspec.Struct, frozen=True, tag=1, array_like=True):
    """`uploader` shall put the records of [base, end) into `bucket`, under `name`."""

    bucket: str
    name: str
    base_offset: Offset
    end_offset: Offset
    uploader: BrokerId


class GoLive(msgspec.Struct, frozen=True, tag=2, array_like=True):
    """The object of an intent is in the bucket, and has been confirmed."""

    bucket: str
    entry: SegmentEntry


class Abandon(msgspec.Struct, frozen=True, tag=3, array_like=True):
    """The intent's upload is given up; its name is never used again."""

    bucket: str
    name: str


class Retire(msgspec.Struct, frozen=True, tag=4, array_like=True):
    """Live segments that end at or below `before` count no more; deleted after a grace."""

    bucket: str
    before: Offset
    at_ms: int


class Replace(msgspec.Struct, frozen=True, tag=5, array_like=True):
    """One live object takes the place of a run of live ones, which retire."""

    bucket: str
    names: tuple[str, ...]
    entry: SegmentEntry
    at_ms: int


class Forget(msgspec.Struct, frozen=True, tag=6, array_like=True):
    """These retired or abandoned objects are deleted from the bucket: gone."""

    bucket: str
    names: tuple[str, ...]


Command = Intend | GoLive | Abandon | Retire | Replace | Forget
