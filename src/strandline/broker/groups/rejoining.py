"""Asks the controller to record that a replica which lost its state rejoins.

Why:    an operator may give this broker an earlier data directory back. That directory lacks
        what the broker has acknowledged and voted with a later one, so it must not be trusted.
How:    A leader asks a replica to rejoin. The replica waits until the controller has recorded it
        and this broker has replayed the record. Then it rejoins; its durable state stores the
        controller's rejoin version. One command carries all replicas that ask within `TOGETHER_MS`.
        A replica whose state has an older rejoin version starts as one that has lost its disk
        (`replication.host.opening`).
Owns:   the replicas whose rejoin the controller has not recorded yet.
Source: decision 0030."""

import logging
from functools import partial

from strandline.base.clock import Clock, Timer
from strandline.base.errors import ApiError
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.operations.single_flight import SingleFlight
from strandline.controller.commands import NoteRejoined, Refused
from strandline.controller.records import ConfigsChanged, Record
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica

GROUPS_MAX = 1_000
"""The most replicas in one record."""
TOGETHER_MS = 10
"""The command waits for this long after the first request, and takes along the later ones."""
RETRY_MS = 1_000

_log = logging.getLogger("strandline.broker")


class Rejoining:
    """See the module. `incarnation`: the id with which this start of the broker registers."""

    def __init__(
        self,
        *,
        clock: Clock,
        replication: Replication,
        controller: ControllerHost,
        incarnation: str,
    ) -> None:
        self._clock = clock
        self._replication = replication
        self._controller = controller
        self._self_id: BrokerId = replication.self_id
        self._incarnation = incarnation
        self._waiting: set[GroupId] = set()
        self._single_flight = SingleFlight()
        self._timer: Timer | None = None
        replication.on_rejoin_asked.append(self._on_asked)
        controller.on_applied.append(self._on_applied)

    def stop(self) -> None:
        """Stop asking the controller."""
        self._waiting.clear()
        self._single_flight.stop()
        if self._timer is not None:
            self._timer.cancel()

    def _on_asked(self, replica: Replica) -> None:
        self._waiting.add(replica.group)
        self._ask_in(TOGETHER_MS)

    def _ask_in(self, delay_ms: int) -> None:
        if self._timer is None and not self._single_flight.is_under_way:
            self._timer = self._clock.call_later(delay_ms, self._ask)

    def _ask(self) -> None:
        self._timer = None
        self._waiting &= self._replication.replicas.keys()
        if self._waiting:
            self._single_flight.begin(self._note)

    async def _note(self) -> None:
        groups = tuple(sorted(self._waiting)[:GROUPS_MAX])
        try:
            answer = await self._controller.submit(
                NoteRejoined(self._self_id, self._incarnation, groups)
            )
            if isinstance(answer, Refused):
                _log.info("the controller refuses to record rejoined replicas: %s", answer.message)
        except ApiError as error:
            _log.info("rejoined replicas are not recorded yet, trying again: %s", error)
        finally:
            # Groups recorded meanwhile have left `_waiting`; groups that came since are still in
            # it.
            self._clock.call_later(RETRY_MS if self._waiting.issuperset(groups) else 0, self._again)

    def _again(self) -> None:
        if self._waiting:
            self._ask_in(0)

    def _on_applied(self, record: Record) -> None:
        if not isinstance(record, ConfigsChanged) or record.rejoined is None:
            return
        if record.rejoined.broker == self._self_id:
            for group in self._waiting.intersection(record.rejoined.groups):
                self._waiting.discard(group)
                # Not from within the step that moved the controller's log.
                self._clock.call_soon(partial(self._allow, group))

    def _allow(self, group: GroupId) -> None:
        replica = self._replication.replicas.get(group)
        if replica is not None and replica.failed is None:
            replica.allow_rejoin(self._controller.state.rejoined(self._self_id, group))
