"""The leader's side of one upload: asks the uploader how far it is, until the intent is settled.

How:    ask --answer--> ask again at once: the uploader holds the answer until it changes
            --no answer--> ask again after a while
        Bytes that move are progress, and so is waiting for one's turn.
Owns:   what the uploader last answered.
Source: decision 0059."""

import asyncio
from collections.abc import Callable

import msgspec

from strandline.broker.tiering.messages import (
    METHOD,
    Cleaning,
    UploadAsk,
    UploadPhase,
    UploadStatus,
    decode_status,
    encode_message,
)
from strandline.broker.tiering.tier_context import TierContext
from strandline.model.ids import GroupId, Offset
from strandline.network.calls import CallError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.state.commands import Intend, IntendReplace

WAIT_MS = 3_000
"""How long an uploader may hold an answer."""
CALL_TIMEOUT_MS = 6_000
ASK_AGAIN_MS = 1_000
"""After a call without an answer."""


class Attempt:
    """See the module. `on_change` is called once the attempt has come to something, or is stuck.
    `generation`: of the bucket, as the log has it."""

    def __init__(
        self,
        group: GroupId,
        intent: Intend | IntendReplace,
        context: TierContext,
        *,
        generation: int = 0,
        on_change: Callable[[], None],
        cleaning: Cleaning | None = None,
    ) -> None:
        self._group = group
        self._cleaning = cleaning
        self._intent = intent
        self._context = context
        self._generation = generation
        self._on_change = on_change
        self._task: asyncio.Task[None] | None = None
        self._progress_ms = self._answered_ms = context.clock.monotonic_ms()
        self._moved_bytes = 0
        self.entry: SegmentEntry | None = None
        """The object, confirmed; None until then."""
        self.failure: str | None = None
        """Why the attempt comes to nothing; None if it may."""
        self.is_unchanged = False
        """Whether the object to be replaced would stay as it is: there is nothing to replace."""
        self.mapped_end = Offset(0)
        """Of a pass of compaction: how far its map goes."""
        self.is_forgotten = False
        """Whether it failed because the uploader has restarted: that replica may try again."""
        self.reason = "no answer from the uploader"
        """Why there is no progress, as far as known."""

    def begin(self, *, may_start: bool) -> None:
        """Start asking."""
        self._task = asyncio.get_running_loop().create_task(self._ask_on(may_start=may_start))

    def stop(self) -> None:
        """The intent is settled, or another broker leads."""
        if self._task is not None:
            self._task.cancel()

    def stalled_ms(self, now_ms: int) -> int:
        """How long ago it last made progress."""
        return now_ms - self._progress_ms

    def silent_ms(self, now_ms: int) -> int:
        """How long ago the uploader last answered."""
        return now_ms - self._answered_ms

    async def _ask_on(self, *, may_start: bool) -> None:
        seen = 0
        while True:
            ask = UploadAsk(
                self._group,
                self._intent,
                may_start,
                WAIT_MS,
                seen,
                self._generation,
                self._cleaning,
            )
            status = await self._ask(ask)
            if status is None:
                await asyncio.sleep(ASK_AGAIN_MS / 1000)
                continue
            seen = status.changes
            if status.phase is not UploadPhase.UNKNOWN:
                may_start = False  # It has begun. If it forgets that, it has restarted.
            self._note(status)
            if self.entry is not None or self.failure is not None or self.is_unchanged:
                self._on_change()
                return
            if status.phase is UploadPhase.WAITING and status.reason:
                await asyncio.sleep(ASK_AGAIN_MS / 1000)  # It was not held: too many wait.

    async def _ask(self, ask: UploadAsk) -> UploadStatus | None:
        uploader = self._intent.uploader
        try:
            if uploader == self._context.broker_id:
                return await self._context.uploads.status(ask)
            answer = await self._context.calls.call(
                uploader, METHOD, encode_message(ask), timeout_ms=CALL_TIMEOUT_MS
            )
            return decode_status(answer)
        except (CallError, msgspec.MsgspecError) as error:
            self.reason = f"broker {uploader}: {error}"
            return None

    def _note(self, status: UploadStatus) -> None:
        self._answered_ms = self._context.clock.monotonic_ms()
        if status.phase is UploadPhase.UNKNOWN:
            self.is_forgotten = True
            self.failure = "the uploader does not know it, or has restarted"
        elif status.phase is UploadPhase.FAILED:
            self.failure = status.reason
        elif status.phase is UploadPhase.UNCHANGED:
            self.is_unchanged = True
        elif status.phase is UploadPhase.DONE and status.entry is not None:
            self.entry = status.entry
        elif status.moved_bytes > self._moved_bytes or status.phase is UploadPhase.WAITING:
            # One that waits for its turn is no sign of trouble: those before it may be.
            self._moved_bytes = status.moved_bytes
            self._progress_ms = self._context.clock.monotonic_ms()
        self.mapped_end = status.mapped_end
        self.reason = status.reason or status.phase.name.lower()
