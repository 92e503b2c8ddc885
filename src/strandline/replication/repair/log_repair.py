"""Finds damage in the logs of one broker and repairs it from other replicas.

Why:    a flipped bit damages one batch of one copy. Copying the whole log would take a voter away
        for hours; leaving the damage would wait for a second one.
How:    one task scrubs all logs at a bounded rate, and at once a segment in which a reader met
        damage. For each gap it

            asks the leader, then the other replicas, for the entries
              --> `storage.recovery.mending` --> flush --> scrub again

        An entry of the same index and epoch is the same everywhere, and its checksum shows that it
        is whole. So any replica can help, and several may fill one gap together. No failure delays
        other gaps, other logs or the scrub.
            The replica still knows the indexes and epochs that it acknowledged: its votes and
        acknowledgements count. It only hands leadership over, and stands for election last.
Owns:   the task and the known gaps; one per broker.
Source: Protocol-Aware Recovery for Consensus-Based Storage, FAST'18 (repair from peers, not by
        truncation); design section 4."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from strandline.base.clock import Clock
from strandline.base.errors import StorageError, StrandlineError
from strandline.model.ids import GroupId, Index
from strandline.network.calls import Calls
from strandline.replication.repair.gap_fetch import GapFetch, Patch, RepairAttempt
from strandline.replication.replica.replica import Replica
from strandline.storage.layout import parse_name
from strandline.storage.log.log import Log
from strandline.storage.recovery.mending import fits_in_place
from strandline.storage.recovery.rewriting import Rewrite
from strandline.storage.recovery.scrubbing import Gap, Scrub

SLICE_BYTES = 32 << 10
"""Bytes that one step reads before other work runs: a few ms for small batches."""
URGENT_BYTES = 4 * SLICE_BYTES
"""The same for a log in which a reader met damage."""
SHARE = 0.02
"""The largest share of time that the scrub takes, whatever its rate."""
FIRST_ROUND_MS = 600_000
"""The first round starts at most this long after the broker, which has other work first."""
RETRY_MS = 10_000
"""The pause before a failed repair is tried again."""
LOOK_AGAIN_MS = 60_000
"""The shortest time between two scrubs of a log with known gaps that readers cause."""
PAUSE_S = 0.005
"""The pause between two steps of the task: other work runs, and queued messages leave."""

_log = logging.getLogger("strandline.replication")


@dataclass(frozen=True, slots=True)
class _Look:
    """A scrub that a reader caused; `segment`: only the segment with this base index."""

    log: Log
    scrub: Scrub
    segment: Index | None


class LogRepair:
    """See the module. Without `start` it neither scrubs nor repairs."""

    def __init__(self, replicas: Mapping[GroupId, Replica], calls: Calls, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock
        self._rate_bytes = 0
        self._interval_ms = 0
        self._suspects: dict[GroupId, str] = {}
        self._looks: dict[GroupId, _Look] = {}
        self._gaps: dict[GroupId, list[Gap]] = {}
        # {group with gaps: when it is repaired next}
        self._due_ms: dict[GroupId, int] = {}
        # After a repair the scrub runs for as long as the repair took.
        self._pause_until_ms = 0
        # {group: when a reader last caused a scrub of it}
        self._looked_ms: dict[GroupId, int] = {}
        self.gap_fetch = GapFetch(replicas, calls)
        self._round: deque[GroupId] = deque()
        self._round_due_ms = 0
        # The log of the round's first group, and the pass over it.
        self._scrub: tuple[Log, Scrub] | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.mended_count = 0

    def start(self, *, rate_bytes: int, interval_ms: int) -> None:
        """Scrub every log at `rate_bytes` a second (0: never), a new round each `interval_ms`. Does
        nothing if the task runs."""
        if self._task is not None:
            return
        self._rate_bytes = rate_bytes
        self._interval_ms = interval_ms
        now_ms = self._clock.monotonic_ms()
        self._round_due_ms = now_ms + min(interval_ms, FIRST_ROUND_MS)
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """End the task."""
        if self._task is not None:
            self._task.cancel()

    def suspect(self, replica: Replica, error: OSError | StorageError) -> None:
        """A reader could not read a log: scrub it soon, except for known gaps, which readers may
        meet for ever."""
        if replica.group in self._looks:
            return  # A reader that meets it later reports it again.
        path = error.path if isinstance(error, StorageError) else ""
        if replica.group not in self._gaps or self._may_be_another(replica.group, error):
            self._suspects.setdefault(replica.group, path)
            self._wake.set()

    def _may_be_another(self, group: GroupId, error: OSError | StorageError) -> bool:
        """Whether the error may lie outside all known gaps; at most once in `LOOK_AGAIN_MS`,
        because the scrub may not find it."""
        if not isinstance(error, StorageError) or parse_name(error.path.rpartition("/")[2]) is None:
            return False
        if self._clock.monotonic_ms() < self._looked_ms.get(group, 0) + LOOK_AGAIN_MS:
            return False
        return not any(
            gap.path == error.path and gap.start.position <= error.position < gap.end.position
            for gap in self._gaps[group]
        )

    # ---- the task --------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                wait_s = await self._step()
            except (OSError, StrandlineError) as error:
                _log.warning("log repair failed, and is tried again later: %s", error)
                wait_s = RETRY_MS / 1000
            except Exception:
                # A task boundary: one log must not stop the repair of the others.
                _log.exception("log repair failed, and is tried again later")
                wait_s = RETRY_MS / 1000
            if wait_s > 0:
                try:
                    async with asyncio.timeout(wait_s):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    async def _step(self) -> float:
        """Do the most urgent work; returns the seconds until the next step."""
        self._look()
        now_ms = self._clock.monotonic_ms()
        due = min(self._due_ms, key=self._due_ms.__getitem__, default=None)
        if due is not None and max(self._due_ms[due], self._pause_until_ms) <= now_ms:
            self._due_ms[due] = now_ms + RETRY_MS
            await self._mend(due)
            ended_ms = self._clock.monotonic_ms()
            self._pause_until_ms = ended_ms + ended_ms - now_ms
        if self._suspects or self._looks:
            return PAUSE_S
        wait_s = self._scrub_slice() if self._rate_bytes else RETRY_MS / 1000
        next_ms = max(min(self._due_ms.values(), default=0), self._pause_until_ms)
        left_ms = next_ms - self._clock.monotonic_ms() if self._due_ms else RETRY_MS
        return max(PAUSE_S, min(wait_s, left_ms / 1000))

    # ---- finding ---------------------------------------------------------------------------------

    def _look(self) -> None:
        """Scrub a slice of the segment that a reader named, or else of the whole log. The logs take
        turns."""
        for group, path in self._suspects.items():
            replica = self._replica(group)
            if replica is not None:
                parsed = parse_name(path.rpartition("/")[2])
                first = parsed[0].base_index if parsed else Index(0)
                scrub = replica.log.mending.scrub(first)
                self._looks[group] = _Look(replica.log, scrub, first if parsed else None)
                self._looked_ms[group] = self._clock.monotonic_ms()
        self._suspects.clear()
        if not self._looks:
            return
        group = next(iter(self._looks))
        look = self._looks.pop(group)
        replica = self._replica(group)
        if replica is None or replica.log is not look.log:
            return
        count = look.scrub.step(URGENT_BYTES)
        self._take_gaps(replica, look.scrub)
        if count and not (look.segment is not None and look.scrub.done_index > look.segment):
            self._looks[group] = look
        elif group not in self._gaps:
            replica.damage.on_repaired()

    def _scrub_slice(self) -> float:
        now_ms = self._clock.monotonic_ms()
        if self._scrub is None and not self._begin_next(now_ms):
            return max(1, self._round_due_ms - now_ms) / 1000
        replica = self._replica(self._round[0])
        log, scrub = self._scrub or (None, None)
        self._scrub = None
        count = 0
        try:
            if replica is not None and scrub is not None and replica.log is log:
                count = scrub.step(min(SLICE_BYTES, self._rate_bytes))
                self._take_gaps(replica, scrub)
        finally:
            if count and log is not None and scrub is not None:
                self._scrub = log, scrub
            else:
                self._round.popleft()
        spent_ms = self._clock.monotonic_ms() - now_ms
        return max(count / self._rate_bytes, spent_ms / 1000 / SHARE)

    def _begin_next(self, now_ms: int) -> bool:
        """Start with the next log of the round, or a new round; False if none is due."""
        if not self._round:
            if now_ms < self._round_due_ms:
                return False
            self._round_due_ms = now_ms + self._interval_ms
            self._round.extend(self._replicas)
        while self._round:
            replica = self._replica(self._round[0])
            if replica is not None:
                log = replica.log
                self._scrub = log, log.mending.scrub(log.start_index)
                return True
            self._round.popleft()
        return False

    def _take_gaps(self, replica: Replica, scrub: Scrub) -> None:
        known = self._gaps.get(replica.group, [])
        found = [gap for gap in scrub.gaps if gap not in known]
        scrub.gaps.clear()
        for gap in found:
            _log.error(
                "%s: damaged in %s at byte %d, offsets %d to %d; asking the other replicas",
                replica.name,
                gap.path,
                gap.start.position,
                gap.start.offset,
                gap.end.offset - 1,
            )
        if found:
            self._gaps[replica.group] = [*known, *found]
            self._due_ms[replica.group] = 0
            replica.damage.on_found(lost_at=())

    # ---- mending ---------------------------------------------------------------------------------

    async def _mend(self, group: GroupId) -> None:
        """Repair the gaps of a log, one segment at a time, as far as other replicas help."""
        replica = self._replica(group)
        gaps = self._gaps.get(group, [])
        left: list[Gap] = []
        attempt = RepairAttempt()
        try:
            while gaps and replica is not None:
                segment = gaps[0].segment
                own = [gap for gap in gaps if gap.segment is segment]
                gaps = [gap for gap in gaps if gap.segment is not segment]
                left += await self._mend_segment(replica, own, attempt)
        except (OSError, StorageError) as error:
            left = self._gaps.get(group, [])
            if replica is not None:
                _log.warning("%s: not repaired, tried again later: %s", replica.name, error)
                if replica.log.failed:
                    replica.fail(error)
        if left and self._replica(group) is not None:
            self._gaps[group] = left
            self._due_ms[group] = self._clock.monotonic_ms() + RETRY_MS
            if replica is not None:
                replica.damage.on_found(lost_at=attempt.lost_at)
            return
        self._gaps.pop(group, None)
        self._due_ms.pop(group, None)
        self._looked_ms.pop(group, None)
        if replica is not None and not (group in self._suspects or group in self._looks):
            replica.damage.on_repaired()

    async def _mend_segment(
        self, replica: Replica, gaps: list[Gap], attempt: RepairAttempt
    ) -> list[Gap]:
        """Repair these gaps of one segment; returns those that remain. Raises OSError,
        StorageError."""
        mending = replica.log.mending
        present = mending.find_each_again(gaps)
        if not present:
            return []
        if not await _report_unclean(replica, present):
            return present
        present = mending.find_each_again(present)
        patches: list[Patch] = []
        for gap in present:
            patches += await self.gap_fetch.fetch(replica, gap, attempt)
        if replica.failed is not None or mending.find_each_again(present) != present:
            return present  # The log has changed meanwhile: another time.
        is_same = not replica.raft.is_compacted
        fitting = [one for one in patches if fits_in_place(one.gap, one.data, is_same=is_same)]
        if fitting != patches and [one.gap for one in patches] == present:
            rewrite = mending.rewrite([(one.gap, one.data) for one in patches])
            if not await self._rewrite(replica, rewrite):
                return present
        else:
            patches = fitting
            for one in patches:
                mending.fill(one.gap, one.data)
            if patches:
                replica.flush()
        replica.tell_compacted()
        self.mended_count += len(patches)
        for one in patches:
            _log.info(
                "%s: repaired offsets %d to %d with entries from broker %s",
                replica.name,
                one.gap.start.offset,
                one.gap.end.offset - 1,
                one.helper,
            )
        return mending.find_each_again(present)

    async def _rewrite(self, replica: Replica, rewrite: Rewrite) -> bool:
        try:
            while rewrite.step(SLICE_BYTES):
                cleaned = rewrite.take()
                if cleaned is not None:
                    replica.log.mending.replace(cleaned)
                    return True
                await asyncio.sleep(PAUSE_S)
                if replica.failed is not None:
                    break
        except StorageError as error:
            # Damage beside the known gaps: without a new scrub every retry would fail alike.
            self._suspects.setdefault(replica.group, error.path)
            self._wake.set()
        except OSError as error:
            if replica.log.failed:
                replica.fail(error)
            _log.warning("%s: not repaired, tried again later: %s", replica.name, error)
        rewrite.abandon()
        return False

    def _replica(self, group: GroupId) -> Replica | None:
        replica = self._replicas.get(group)
        return None if replica is None or replica.failed is not None else replica


async def _report_unclean(replica: Replica, gaps: list[Gap]) -> bool:
    """Tell the leader that the log is not clean from these gaps on: the entries to come may be less
    compacted. False while that waits for the journal.

    The request follows on the same lane, so a leader that answers it has received this."""
    replica.log.mending.expect(min(gap.start.raft_index for gap in gaps))
    replica.tell_compacted()
    await asyncio.sleep(PAUSE_S)
    return not replica.is_busy
