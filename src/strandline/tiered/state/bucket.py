"""One bucket's part of a partition's tier state.

How:    retired ...[live][live][live]  [intent][intent]
                   start          live end
        Live objects lie end to end. Intents may wait behind them, several at a time, so that
        uploads run side by side; they go live in the order of their offsets.
        One replacement of a run of live objects may be under way.
Owns:   one partition's objects in one bucket; only `TierState.apply` changes them.
Source: decisions 0057 and 0066."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

from strandline.model.ids import Offset
from strandline.tiered.segments.entry import SegmentEntry, epochs_of
from strandline.tiered.state.commands import (
    Abandon,
    BucketImage,
    Command,
    Forget,
    GoLive,
    Intend,
    IntendReplace,
    MarkClean,
    Removal,
    Replace,
    Reset,
    Retire,
)
from strandline.tiered.state.transitions import TRANSITIONS, Phase, Refusal

INTENTS_MAX = 8
"""Outstanding uploads of one partition into one bucket."""
NAME_CHARS_MAX = 512

_NONE = Offset(0)


@dataclass(slots=True)
class Counters:
    """Objects by what became of them, over the partition's life."""

    live_count: int = 0
    abandoned_count: int = 0
    retired_count: int = 0
    forgotten_count: int = 0


@dataclass(slots=True)
class BucketState:
    """See the module. All of it is a function of the committed log."""

    live: list[SegmentEntry] = field(default_factory=list)
    """Ascending; each begins where the one before ends."""
    intents: list[Intend] = field(default_factory=list)
    """Outstanding uploads, in the order of their commands; no two overlap."""
    replacement: IntendReplace | None = None
    """The intent of the replacement of a run of live objects that is under way."""
    removals: dict[str, Removal] = field(default_factory=dict)
    """{name: retired or abandoned object that may be in the bucket still}."""
    end_offset: Offset = _NONE
    """The end of the last live object; where none is live, of the last that was. It goes back only
    where an emptied bucket begins anew."""
    retired_before: Offset = _NONE
    """The topic needs no record below this offset; no live object begins below it."""
    is_emptied: bool = False
    """Whether the topic did not use the bucket any more, and nothing has gone live since."""
    generation: int = 0
    """How often an operator had replaced the bucket when it last began anew (decision 0068)."""
    clean_before: Offset = _NONE
    """Of a compacted topic: no live record below this offset has a key that another one below it
    has later."""
    size_bytes: int = 0
    """Of the live objects."""
    counters: Counters = field(default_factory=Counters)
    _phases: dict[str, Phase] = field(default_factory=dict)

    @property
    def start_offset(self) -> Offset:
        """The first live offset; `end_offset` where none is live."""
        return self.live[0].base_offset if self.live else self.end_offset

    @property
    def next_offset(self) -> Offset:
        """Where the next live object begins, or above it where none is live."""
        return self.retired_before if self.is_emptied else self.end_offset

    @property
    def is_in_use(self) -> bool:
        """Whether the bucket has objects that count, or that may come to count."""
        return bool(self.live or self.intents)

    def has_run(self, names: Sequence[str], base: Offset, end: Offset) -> bool:
        """Whether exactly these objects are live, one behind the other, and have [base, end)."""
        run = self._run(base, len(names))
        is_run = bool(run) and tuple(one.name for one in run) == tuple(names)
        return is_run and (run[0].base_offset, run[-1].end_offset) == (base, end)

    def _run(self, base: Offset, count: int) -> Sequence[SegmentEntry]:
        """Up to so many live objects, from the one that holds `base` on."""
        first = max(bisect_right(self.live, base, key=_base_of) - 1, 0)
        return self.live[first : first + count]

    def find(self, offset: Offset) -> SegmentEntry | None:
        """The live object with the record at `offset`."""
        at = bisect_right(self.live, offset, key=_base_of) - 1
        return self.live[at] if at >= 0 and offset < self.live[at].end_offset else None

    def phase_of(self, name: str) -> Phase:
        """How far the object has come."""
        return self._phases.get(name, Phase.ABSENT)

    # ---- commands --------------------------------------------------------------------------------

    def apply(self, command: Command, log_end: Offset) -> Refusal | None:
        """Apply one command, whose marker lies at `log_end`: the records before are committed with
        it. Where it is refused, nothing has changed."""
        return _APPLY[type(command)](self, command, log_end)

    def _intend(self, command: Intend, log_end: Offset) -> Refusal | None:
        base, end = command.base_offset, command.end_offset
        if not (0 <= base < end and 0 < len(command.name) <= NAME_CHARS_MAX):
            return Refusal.MALFORMED
        if end > log_end:
            return Refusal.BEYOND_MARKER
        if self._next(command.name, Intend) is None:
            return Refusal.WRONG_PHASE
        if len(self.intents) >= INTENTS_MAX:
            return Refusal.TOO_MANY
        if not self._is_in_line(base) and all(one.end_offset != base for one in self.intents):
            return Refusal.NOT_IN_LINE
        if any(base < one.end_offset and one.base_offset < end for one in self.intents):
            return Refusal.OVERLAP
        self.intents.append(command)
        self._move(command.name, Intend)
        return None

    def _go_live(self, command: GoLive, _: Offset) -> Refusal | None:
        entry = command.entry
        if self._next(entry.name, GoLive) is None:
            return Refusal.WRONG_PHASE
        intent = self._intent_of(entry.name)
        if (entry.base_offset, entry.end_offset) != (intent.base_offset, intent.end_offset):
            return Refusal.OTHER_RANGE
        if not is_sound(entry):
            return Refusal.MALFORMED
        if not self._is_in_line(entry.base_offset):
            return Refusal.NOT_IN_LINE
        self.intents.remove(intent)
        self.live.append(entry)
        self.end_offset = entry.end_offset
        self.is_emptied = False
        self.size_bytes += entry.size_bytes
        self.counters.live_count += 1
        self._move(entry.name, GoLive)
        return None

    def _abandon(self, command: Abandon, _: Offset) -> Refusal | None:
        if self._next(command.name, Abandon) is None:
            return Refusal.WRONG_PHASE
        if self.phase_of(command.name) is Phase.REPLACING:
            self.replacement = None
        else:
            self.intents.remove(self._intent_of(command.name))
        self.counters.abandoned_count += 1
        self.removals[command.name] = Removal(command.name, 0, command.at_ms, was_live=False)
        self._move(command.name, Abandon)
        return None

    def _retire(self, command: Retire, _: Offset) -> Refusal | None:
        count = bisect_right(self.live, command.before, key=_end_of)
        if not count:
            return Refusal.NOTHING_TO_RETIRE
        if not command.empties:
            self.retired_before = self.live[count - 1].end_offset
        elif count < len(self.live) or self.intents or self.replacement is not None:
            return Refusal.NOT_EMPTY
        else:
            self.is_emptied = True
            self.clean_before = _NONE
        self._take_out(0, count, at_ms=command.at_ms, by=Retire)
        return None

    def _intend_replace(self, command: IntendReplace, _: Offset) -> Refusal | None:
        if not (command.names and 0 < len(command.name) <= NAME_CHARS_MAX):
            return Refusal.MALFORMED
        if self._next(command.name, IntendReplace) is None:
            return Refusal.WRONG_PHASE
        if self.replacement is not None:
            return Refusal.TOO_MANY
        if not self.has_run(command.names, command.base_offset, command.end_offset):
            return Refusal.OTHER_RANGE
        self.replacement = command
        self._move(command.name, IntendReplace)
        return None

    def _replace(self, command: Replace, _: Offset) -> Refusal | None:
        entry, intent = command.entry, self.replacement
        if intent is None or entry.name != intent.name:
            return Refusal.WRONG_PHASE
        base, end = intent.base_offset, intent.end_offset
        if command.names != intent.names or (entry.base_offset, entry.end_offset) != (base, end):
            return Refusal.OTHER_RANGE
        if not self.has_run(intent.names, base, end):  # Retention has taken some of it.
            return Refusal.OTHER_RANGE
        if not is_sound(entry):
            return Refusal.MALFORMED
        run = self._run(base, len(intent.names))
        if entry.epochs != tuple(epochs_of(run)):
            return Refusal.OTHER_EPOCHS
        first = bisect_right(self.live, base, key=_base_of) - 1
        self._take_out(first, len(run), at_ms=command.at_ms, by=Replace)
        self.live.insert(first, entry)
        self.replacement = None
        self.size_bytes += entry.size_bytes
        self.counters.live_count += 1
        self._move(entry.name, Replace)
        return None

    def _mark_clean(self, command: MarkClean, _: Offset) -> Refusal | None:
        if not self.live or not self.clean_before < command.before <= self.end_offset:
            return Refusal.NOT_FORWARD
        self.clean_before = command.before
        return None

    def _forget(self, command: Forget, _: Offset) -> Refusal | None:
        names = command.names
        is_wrong = any(self._next(one, Forget) is None for one in names)
        if not names or is_wrong or len(set(names)) != len(names):
            return Refusal.WRONG_PHASE
        for name in names:
            del self.removals[name]
            self._move(name, Forget)
        self.counters.forgotten_count += len(names)
        return None

    def _reset(self, command: Reset, _: Offset) -> Refusal | None:
        if command.generation <= self.generation:
            return Refusal.OLD_GENERATION
        self.counters.retired_count += len(self.live)
        self.counters.abandoned_count += len(self.intents)
        self.live.clear()
        self.intents.clear()
        self.replacement = None
        self.removals.clear()
        self._phases.clear()
        self.size_bytes = 0
        self.clean_before = _NONE
        self.is_emptied = True
        self.generation = command.generation
        return None

    # ---- parts of commands -----------------------------------------------------------------------

    def _is_in_line(self, base: Offset) -> bool:
        """Whether an object that begins at `base` may be the next live one."""
        return base == self.end_offset if self.live else base >= self.next_offset

    def _intent_of(self, name: str) -> Intend:
        return next(one for one in self.intents if one.name == name)

    def _take_out(self, first: int, count: int, *, at_ms: int, by: type) -> None:
        """Live objects retire."""
        for entry in self.live[first : first + count]:
            self.removals[entry.name] = Removal(entry.name, entry.size_bytes, at_ms, was_live=True)
            self.size_bytes -= entry.size_bytes
            self._move(entry.name, by)
        self.counters.retired_count += count
        del self.live[first : first + count]

    def _next(self, name: str, command: type) -> Phase | None:
        return TRANSITIONS.get((self.phase_of(name), command))

    def _move(self, name: str, command: type) -> None:
        phase = TRANSITIONS[self.phase_of(name), command]
        if phase is Phase.ABSENT:
            del self._phases[name]
        else:
            self._phases[name] = phase

    # ---- checkpoints -----------------------------------------------------------------------------

    def image(self, bucket: str) -> BucketImage:
        """All of it, as it stands in a checkpoint."""
        counters = self.counters
        return BucketImage(
            bucket,
            tuple(self.live),
            tuple(self.intents),
            tuple(self.removals.values()),
            self.end_offset,
            self.retired_before,
            (
                counters.live_count,
                counters.abandoned_count,
                counters.retired_count,
                counters.forgotten_count,
            ),
            self.is_emptied,
            self.generation,
            self.replacement,
            self.clean_before,
        )

    @classmethod
    def restored(cls, image: BucketImage) -> "BucketState":
        """The state of an image."""
        phases = dict.fromkeys((one.name for one in image.live), Phase.LIVE)
        phases |= dict.fromkeys((one.name for one in image.intents), Phase.INTENDED)
        if image.replacement is not None:
            phases[image.replacement.name] = Phase.REPLACING
        for one in image.removals:
            phases[one.name] = Phase.RETIRED if one.was_live else Phase.ABANDONED
        return cls(
            list(image.live),
            list(image.intents),
            image.replacement,
            {one.name: one for one in image.removals},
            image.end_offset,
            image.retired_before,
            image.is_emptied,
            image.generation,
            image.clean_before,
            sum(one.size_bytes for one in image.live),
            Counters(*image.counters),
            phases,
        )


def is_sound(entry: SegmentEntry) -> bool:
    """Whether the fields of an entry are within their bounds."""
    epochs = entry.epochs
    ascending = all(
        before[0] < after[0] and before[1] < after[1] for before, after in pairwise(epochs)
    )
    return (
        0 <= entry.base_offset < entry.end_offset
        and 0 <= entry.data_bytes < entry.size_bytes
        and 0 < len(entry.name) <= NAME_CHARS_MAX
        and bool(epochs)
        and ascending
        and entry.base_offset <= epochs[0][1]
        and epochs[-1][1] < entry.end_offset
    )


def _base_of(entry: SegmentEntry) -> Offset:
    return entry.base_offset


def _end_of(entry: SegmentEntry) -> Offset:
    return entry.end_offset


def _table() -> dict[type, Callable[[BucketState, Command, Offset], Refusal | None]]:
    state = BucketState
    table = {
        Intend: state._intend,
        GoLive: state._go_live,
        Abandon: state._abandon,
        Retire: state._retire,
        Replace: state._replace,
        IntendReplace: state._intend_replace,
        MarkClean: state._mark_clean,
        Forget: state._forget,
        Reset: state._reset,
    }
    return cast(dict[type, Callable[[BucketState, Command, Offset], Refusal | None]], table)


_APPLY = _table()
"""{type of a command: the method that applies it}."""


def entries_between(
    live: Sequence[SegmentEntry], start: Offset, end: Offset
) -> Sequence[SegmentEntry]:
    """The objects that have a record in [start, end)."""
    first = max(bisect_right(live, start, key=_base_of) - 1, 0)
    return live[first : bisect_right(live, end - 1, key=_base_of)]
