"""Holds the first batch of an unknown producer for a moment: it may have overtaken an earlier one.

Why:    any first sequence is right, because a client goes on with its numbers in a topic that was
        made again. But an earlier batch may be on its way: it met a broker that did not know the
        new topic yet, or no leader, and the client sends it again. If the later one is appended
        first, the earlier one is out of sequence for ever.
How:    unknown producer, sequence > 0 --held--> an earlier batch is appended: goes on behind it
                                       --WAIT_MS--> goes on alone
        Only the first leader of a partition holds. A later one refuses the batch once, because a
        client may notice late that the leader before is gone (`Appender`). A log whose beginning or
        producers are gone has forgotten them: nothing is held.
Owns:   the requests held, and the producers whose wait is over; one per replica.
Source: decision 0043; Kafka's clients repeat batches in the order of their sequences."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from strandline.base.clock import Clock, Timer
from strandline.replication.leader.requests import Request
from strandline.replication.replica.state import ReplicaState
from strandline.storage.producers.producers import SEQUENCE_COUNT

WAIT_MS = 1_000
"""A client has repeated its batch by then: it asks for the leader, and pauses for 0.1 to 0.3 s."""
FIRST_EPOCH = 1
"""The first leader of a group leads in this epoch, unless an election failed before."""


@dataclass(slots=True)
class _Held:
    """The requests of one producer, the earliest first. `timer` ends their wait."""

    timer: Timer
    requests: list[Request] = field(default_factory=list)

    def add(self, request: Request) -> None:
        """Hold one more."""
        place = len(self.requests)
        while place and not _is_behind(request, self.requests[place - 1]):
            place -= 1
        self.requests.insert(place, request)


class UnknownProducers:
    """See the module. `go_on` takes requests whose wait is over."""

    def __init__(
        self, replica: ReplicaState, clock: Clock, go_on: Callable[[list[Request]], None]
    ) -> None:
        self._replica = replica
        self._clock = clock
        self._go_on = go_on
        self._held: dict[int, _Held] = {}
        # Producers whose wait is over, and that have appended nothing yet.
        self._over: set[int] = set()

    def holds(self, request: Request) -> bool:
        """Whether a request of an idempotent producer waits here from now on."""
        header = request.headers[0]
        producer = header.producer_id
        if header.base_sequence == 0:
            return False
        held = self._held.get(producer)
        if held is None:
            if not self._may_be_early(producer):
                return False
            timer = self._clock.call_later(WAIT_MS, partial(self._end_wait, producer))
            held = self._held[producer] = _Held(timer)
        held.add(request)
        return True

    @property
    def is_busy(self) -> bool:
        """Whether `on_appended` may have something to do."""
        return bool(self._held or self._over)

    def on_appended(self, request: Request) -> None:
        """A batch of an idempotent producer is appended: those behind it go on."""
        producer = request.headers[0].producer_id
        self._over.discard(producer)
        held = self._held.pop(producer, None)
        if held is not None:
            held.timer.cancel()
            self._go_on(held.requests)

    def clear(self) -> list[Request]:
        """Forget everything; returns the requests that were held."""
        held = list(self._held.values())
        self._held.clear()
        self._over.clear()
        for one in held:
            one.timer.cancel()
        return [request for one in held for request in one.requests]

    @property
    def is_whole(self) -> bool:
        """Whether the log has every batch that was ever committed."""
        log = self._replica.log
        return log.start_offset == 0 and not log.producers.is_incomplete

    @property
    def is_led_first(self) -> bool:
        """Whether no other leader of the partition was before this one."""
        return self._replica.epoch <= FIRST_EPOCH

    def _may_be_early(self, producer: int) -> bool:
        is_unknown = self._replica.log.producers.get(producer) is None
        return is_unknown and self.is_led_first and self.is_whole and producer not in self._over

    def _end_wait(self, producer: int) -> None:
        held = self._held.pop(producer, None)
        if held is not None:
            self._over.add(producer)
            self._go_on(held.requests)


def _is_behind(request: Request, other: Request) -> bool:
    ahead = request.headers[0].base_sequence - other.headers[0].base_sequence
    return ahead % SEQUENCE_COUNT < SEQUENCE_COUNT // 2
