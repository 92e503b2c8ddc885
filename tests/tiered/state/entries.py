"""Makes commands and entries for tests."""

from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.state.commands import (
    Abandon,
    Command,
    Forget,
    GoLive,
    Intend,
    IntendReplace,
    Retire,
)
from strandline.tiered.state.tier import TierState
from strandline.tiered.state.transitions import Refusal

BUCKET = "eu"
FAR = Offset(1_000_000)
"""An offset behind all ranges of a test."""


def entry(
    base: int,
    end: int,
    *,
    name: str = "",
    size_bytes: int = 1_000,
    max_timestamp: int = 0,
    epochs: tuple[tuple[int, int], ...] = (),
) -> SegmentEntry:
    """An object with [base, end), of epoch 1 unless `epochs` says otherwise."""
    return SegmentEntry(
        name or f"{base}-{end}",
        Offset(base),
        Offset(end),
        size_bytes - 100,
        size_bytes,
        7,
        max_timestamp,
        Offset(end - 1),
        tuple((Epoch(epoch), Offset(first)) for epoch, first in epochs or ((1, base),)),
        bytes(32),
    )


def intend(base: int, end: int, *, name: str = "", bucket: str = BUCKET) -> Intend:
    """The intent of that object."""
    return Intend(bucket, name or f"{base}-{end}", Offset(base), Offset(end), BrokerId(1))


def go_live(base: int, end: int, *, name: str = "", bucket: str = BUCKET) -> GoLive:
    """Its confirmation."""
    return GoLive(bucket, entry(base, end, name=name))


def abandon(name: str, *, bucket: str = BUCKET) -> Abandon:
    """The end of an intent."""
    return Abandon(bucket, name, 5)


def intend_replace(
    *names: str, base: int, end: int, name: str, bucket: str = BUCKET
) -> IntendReplace:
    """The intent of an object that takes the place of others."""
    return IntendReplace(bucket, name, names, Offset(base), Offset(end), BrokerId(1))


def retire(before: int, *, bucket: str = BUCKET) -> Retire:
    """Live objects up to there retire."""
    return Retire(bucket, Offset(before), 9)


def forget(*names: str, bucket: str = BUCKET) -> Forget:
    """They are gone."""
    return Forget(bucket, names)


class Tier:
    """A state, and commands for it at the next index."""

    def __init__(self) -> None:
        self.state = TierState()
        self.log_end = FAR

    def apply(self, command: Command) -> Refusal | None:
        """At the next index, in epoch 1."""
        index = Index(self.state.index + 1)
        return self.state.apply(index, Epoch(1), command, log_end=self.log_end)

    def done(self, *commands: Command) -> "Tier":
        """All of them apply."""
        for command in commands:
            refusal = self.apply(command)
            assert refusal is None, f"{command}: {refusal}"
        return self

    def upload(self, *ends: int, bucket: str = BUCKET, start: int | None = None) -> "Tier":
        """Objects up to those ends go live, one after the other."""
        base = self.state.live_end(bucket) if start is None else start
        for end in ends:
            self.done(intend(base, end, bucket=bucket), go_live(base, end, bucket=bucket))
            base = end
        return self
