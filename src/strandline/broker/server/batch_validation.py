"""Decides where a producer's batches are validated: here and now, or on the worker thread.

Why:    nearly every batch takes some 10 us, for which a thread would cost more than it saves. A
        large one would hold up the event loop.
How:    a request has `INLINE_BYTES_MAX` of uncompressed records that the loop validates by itself,
        each batch at most the scratch buffer. What is beyond it goes to the worker thread, where a
        request may decompress `RATIO_MAX` times its bytes, and `ASIDE_BYTES_ALLOWED` at least.
        The worker validates one batch at a time: memory does not grow with connections. Requests
        whose connections are gone stay in its queue, so the queue has a bound of its own.
Owns:   the scratch buffer; one per broker.
Source: docs/decisions/0044-inside-a-batch.md."""

import logging
from collections.abc import Callable, Sequence
from traceback import clear_frames
from typing import Protocol

from strandline.base.errors import ApiError
from strandline.protocol.errors import Error
from strandline.records.batch import BatchHeader
from strandline.records.contents import IS_COMPILED
from strandline.records.recompress import Budget
from strandline.records.validate_contents import ContentRules, validate_contents

SCRATCH_BYTES = 512 << 10
INLINE_BYTES_MAX = 2 << 20
INLINE_RECORDS_MAX = 100_000 if IS_COMPILED else 2_000
ASIDE_BYTES_ALLOWED = 64 << 20
RATIO_MAX = 100
ANEW_INLINE_BYTES_MAX = 128 << 10
STORED_BYTES_ALLOWED = 64 << 20
"""What a request's batches may take with their topics' codecs; twice its size, if that is more."""
QUEUED_BYTES_MAX = 256 << 20
"""Batches that wait for the worker: more than all open connections may have in work."""
_TOO_LARGE = -1

_log = logging.getLogger("strandline.broker")


class Worker(Protocol):
    """What validates large batches."""

    def run(
        self, work: Callable[[], ApiError | None], done: Callable[[ApiError | None], None]
    ) -> None:
        """Run `work`, then `done` with its result on the broker's thread."""


class AtOnce:
    """A worker without a thread."""

    def run(
        self, work: Callable[[], ApiError | None], done: Callable[[ApiError | None], None]
    ) -> None:
        """See `Worker`."""
        done(work())


class Allowance:
    """What is left of a request's bounds, in bytes of uncompressed records. `anew_inline_bytes`: of
    batches that the loop compresses anew; `anew`: of all that are compressed anew."""

    __slots__ = ("anew", "anew_inline_bytes", "aside_bytes", "inline_bytes", "inline_records")

    def __init__(self, request_bytes: int) -> None:
        self.inline_bytes = INLINE_BYTES_MAX
        self.inline_records = INLINE_RECORDS_MAX
        self.aside_bytes = max(ASIDE_BYTES_ALLOWED, RATIO_MAX * request_bytes)
        self.anew_inline_bytes = ANEW_INLINE_BYTES_MAX
        self.anew = Budget(self.aside_bytes, max(STORED_BYTES_ALLOWED, 2 * request_bytes))


class BatchValidation:
    """See the module."""

    def __init__(self, worker: Worker | None = None) -> None:
        self.worker: Worker = worker or AtOnce()
        self._scratch = bytearray(SCRATCH_BYTES)
        self._queued_bytes = 0

    @property
    def has_room(self) -> bool:
        """Whether the worker may get more to do."""
        return self._queued_bytes < QUEUED_BYTES_MAX

    def run_aside(
        self,
        batches: memoryview,
        work: Callable[[], None],
        done: Callable[[ApiError | None], None],
    ) -> None:
        """Have the worker do something with these batches; `done` gets the ApiError that `work`
        raises, or None. See `Worker`."""
        size = len(batches)
        self._queued_bytes += size

        def guarded() -> ApiError | None:
            try:
                work()
            except ApiError as refusal:
                return _without_frames(refusal)
            except Exception as error:  # A task boundary: the worker goes on.
                _log.exception("a batch could not be validated or compressed")
                return ApiError(Error.UNKNOWN_SERVER_ERROR, str(error))
            return None

        def finished(refusal: ApiError | None) -> None:
            self._queued_bytes -= size
            done(refusal)

        self.worker.run(guarded, finished)

    def validate_now(
        self,
        view: memoryview,
        headers: Sequence[BatchHeader],
        rules: ContentRules,
        allowance: Allowance | None,
    ) -> bool:
        """Validate the batches; False if they are too much for the loop. Raises ApiError as
        `validate_contents` does. `allowance`: None if they are all of the request."""
        header = headers[0]
        if allowance is None:
            if len(headers) == 1 and header.batch_length < INLINE_BYTES_MAX:  # As nearly always.
                return header.records_count <= INLINE_RECORDS_MAX and (
                    validate_contents(view, header, rules, scratch=self._scratch) != _TOO_LARGE
                )
            allowance = Allowance(len(view))
        for header in headers:
            allowance.inline_records -= header.records_count
            if allowance.inline_records < 0 or header.size > allowance.inline_bytes:
                return False
            count = validate_contents(view, header, rules, scratch=self._scratch)
            if count == _TOO_LARGE:
                return False
            allowance.inline_bytes -= max(count, header.size)
        return True

    def validate_aside(
        self,
        view: memoryview,
        headers: Sequence[BatchHeader],
        rules: ContentRules,
        allowance: Allowance,
        *,
        done: Callable[[ApiError | None], None],
    ) -> None:
        """Validate the batches on the worker; `done` gets the refusal, None for none."""

        def work() -> None:
            for header in headers:
                allowance.aside_bytes -= validate_contents(view, header, rules)
                if allowance.aside_bytes < 0:
                    reason = "the batches of the request decompress to too much"
                    raise ApiError(Error.INVALID_RECORD, reason)

        self.run_aside(view, work, done)


def _without_frames(refusal: ApiError) -> ApiError:
    """The refusal without its traceback: frames there keep the buffers of a bomb alive."""
    error: BaseException | None = refusal
    while error is not None:
        clear_frames(error.__traceback__)
        error.__traceback__ = None
        error = error.__context__
    return refusal
