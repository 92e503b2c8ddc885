"""The leader's work on the live objects of one bucket: runs are merged, or cleaned by key.

How:    nothing under way --a run is due, and this broker's turn is free--> IntendReplace
        intent --DONE--> Replace    --UNCHANGED, failed, stalled, run cut--> Abandon
        pass (of a compacted topic): next run, next run, ... --all are done--> MarkClean
        After a change of leader a pass begins anew; what it has replaced stays.
Owns:   the pass, the search for small objects, and delays; the log has the rest.
Source: decision 0066."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from strandline.broker.tiering.attempt import Attempt
from strandline.broker.tiering.messages import Cleaning
from strandline.broker.tiering.tier_context import LedReplica, TierContext
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Offset
from strandline.storage.config import LogConfig
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.names import SegmentName, draw_attempt
from strandline.tiered.state.bucket import BucketState
from strandline.tiered.state.commands import (
    Abandon,
    Command,
    IntendReplace,
    MarkClean,
    Replace,
)
from strandline.tiered.state.transitions import Phase
from strandline.tiered.upload.cleaning import CleaningRules, due_range, next_run
from strandline.tiered.upload.merging import MergeSearch, RunLimits, limits_for

RETRY_MS_MIN = 5_000
RETRY_MS_MAX = 600_000
"""Between two attempts after one that failed."""
TURN_WAIT_MS = 5_000
"""Until the next look, while another partition has this broker's turn."""

_NONE = Offset(0)


@dataclass(slots=True)
class CleaningPass:
    """A pass over the objects below `end`, in this epoch."""

    epoch: Epoch
    start: Offset
    """The bucket is clean below."""
    end: Offset
    next_offset: Offset
    """All objects before are done."""
    name: str = ""
    """Of the replacement under way; empty for none."""
    name_end: Offset = _NONE
    is_unchanged: bool = False
    """Whether the object of that replacement stays as it is."""


class Rewrites:
    """See the module; one for a bucket of a partition that is led here. `note`: tells that a
    replacement is given up, and why."""

    def __init__(
        self,
        replica: LedReplica,
        context: TierContext,
        bucket: str,
        note: Callable[[IntendReplace, str], None],
    ) -> None:
        self._replica = replica
        self._context = context
        self._bucket = bucket
        self._note = note
        self._search = MergeSearch()
        self._pass: CleaningPass | None = None
        self._failures_count = 0
        self._retry_at_ms = 0
        """No replacement is begun before, by the monotonic clock."""
        self.look_again_ms = 0
        """After so long, `next` may find something that was not due; 0 for nothing known."""

    # ---- one that is under way -------------------------------------------------------------------

    def settled(
        self, intent: IntendReplace, attempt: Attempt, *, is_wanted: bool, is_stalled: bool
    ) -> Command | None:
        """Replace or Abandon, once the attempt has come to something. `is_stalled`: it has made no
        progress for too long."""
        state = self._replica.tier.state.buckets[self._bucket]
        wall_ms = self._context.clock.wall_ms()
        reason = attempt.failure or (f"no progress: {attempt.reason}" if is_stalled else None)
        if not is_wanted:
            reason = "the topic does not use this bucket any more"
        elif not state.has_run(intent.names, intent.base_offset, intent.end_offset):
            reason = "retention has taken some of its objects"
        elif attempt.entry is not None:
            self._learn(intent.name, attempt)
            self._failures_count = 0
            live_ms = max(one.live_ms for one in state.live if one.name in intent.names)
            entry = replace(attempt.entry, live_ms=live_ms)
            return Replace(self._bucket, intent.names, entry, wall_ms)
        elif attempt.is_unchanged:
            self._learn(intent.name, attempt)
            return Abandon(self._bucket, intent.name, wall_ms)
        if reason is None:
            return None
        self._note(intent, reason)
        self._back_off()
        return Abandon(self._bucket, intent.name, wall_ms)

    def _learn(self, name: str, attempt: Attempt) -> None:
        """What an attempt of the present pass has brought."""
        known = self._pass
        if known is not None and known.name == name:
            known.is_unchanged = attempt.is_unchanged
            if attempt.mapped_end > known.start:
                known.end = min(known.end, attempt.mapped_end)

    def _back_off(self) -> None:
        backoff_ms = min(RETRY_MS_MIN << min(self._failures_count, 10), RETRY_MS_MAX)
        self._failures_count += 1
        self._retry_at_ms = self._context.clock.monotonic_ms() + backoff_ms
        self._context.end_rewrite(self._replica.group, self._bucket)

    # ---- the next one ----------------------------------------------------------------------------

    def next(self, uploader: Callable[[], BrokerId]) -> Command | None:
        """The next step, if one is due. `uploader`: chooses the one to carry it out."""
        self.look_again_ms = 0
        state = self._replica.tier.state.buckets.get(self._bucket)
        if state is None or not state.live or state.replacement is not None:
            return None
        wait_ms = self._retry_at_ms - self._context.clock.monotonic_ms()
        if wait_ms > 0:
            self.look_again_ms = wait_ms
            return None
        config = self._replica.log.config
        limits = _limits_of(config, self._context.object_bytes_max)
        self._follow_pass(state, config)
        if self._pass is not None:
            run = next_run(state.live, self._pass.next_offset, self._pass.end, limits)
            if not run:
                end, self._pass = self._pass.end, None
                return MarkClean(self._bucket, end)
        else:
            run = self._small_ones(state, limits)
            if not run:
                self._context.end_rewrite(self._replica.group, self._bucket)
                return None
        if not self._context.take_rewrite_turn(self._replica.group, self._bucket):
            self.look_again_ms = TURN_WAIT_MS
            return None
        return self._intend(run, uploader)

    def forget_pass(self) -> None:
        """The topic does not use the bucket: it may begin anew, with other objects."""
        self._pass = None

    def _small_ones(self, state: BucketState, limits: RunLimits) -> Sequence[SegmentEntry]:
        if self._search.is_over(state.end_offset, limits):
            return ()
        run = self._search.next_run(state.live, limits) or ()
        if not run and not self._search.is_over(state.end_offset, limits):
            self.look_again_ms = self._context.interval_ms
        return run

    def cleaning_of(self, name: str) -> Cleaning | None:
        """What the uploader has to know of the pass that this replacement is a part of; None if it
        is a part of none."""
        known = self._pass
        if known is None or known.name != name:
            return None
        config = self._replica.log.config
        return Cleaning(
            known.start,
            known.end,
            self._replica.outlived_offset,
            config.delete_retention_ms,
            config.compaction_map_bytes,
        )

    def _follow_pass(self, state: BucketState, config: LogConfig) -> None:
        """Go on behind the replacement that is over, or begin a pass if one is due."""
        known = self._pass
        if known is not None and (
            not config.compacted
            or known.epoch != self._replica.epoch  # Another leader may have emptied the bucket,
            or known.start < state.clean_before  # or cleaned it further.
        ):
            known = self._pass = None
        if known is not None:
            if known.name and (known.is_unchanged or state.phase_of(known.name) is Phase.LIVE):
                known.next_offset = known.name_end
            known.name, known.is_unchanged = "", False
        elif config.compacted:
            found = due_range(
                state.live,
                state.clean_before,
                _rules_of(config),
                size_bytes=state.size_bytes,
                now_ms=self._context.clock.wall_ms(),
            )
            if found is not None:
                first = state.live[0].base_offset
                self._pass = CleaningPass(self._replica.epoch, found.start, found.end, first)

    def _intend(
        self, run: Sequence[SegmentEntry], uploader: Callable[[], BrokerId]
    ) -> Command | None:
        chosen = uploader()
        if chosen == NO_BROKER:
            return None
        name = SegmentName(
            *self._context.place_of(self._replica.group),
            run[0].base_offset,
            self._replica.epoch,
            draw_attempt(self._context.rng),
        )
        if self._pass is not None:
            self._pass.name, self._pass.name_end = str(name), run[-1].end_offset
        names = tuple(one.name for one in run)
        base, end = run[0].base_offset, run[-1].end_offset
        return IntendReplace(self._bucket, str(name), names, base, end, chosen)


def _limits_of(config: LogConfig, object_bytes_max: int) -> RunLimits:
    has_retention = config.delete
    return limits_for(
        bytes_max=min(config.segment_bytes, object_bytes_max),
        retention_ms=config.retention_ms if has_retention else -1,
        retention_bytes=config.retention_bytes if has_retention else -1,
        retention_records=config.retention_records if has_retention else -1,
    )


def _rules_of(config: LogConfig) -> CleaningRules:
    return CleaningRules(
        config.min_cleanable_dirty_ratio,
        config.min_compaction_lag_ms,
        config.max_compaction_lag_ms if config.has_compaction_lag_max else None,
    )
