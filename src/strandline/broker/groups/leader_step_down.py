"""Lets another voter lead where the controller is needed, and cannot be reached from here.

Why:    a leader that is cut off from the controller alone goes on, and can change nothing: no voter
        leaves, no observer stands in, nothing moves. Its followers may well hear the controller.
How:    a command of a leader was not answered in time
            --> the controller and the other voters are asked whether they hear one
            --the controller answers, or is here: it was only slow--> nothing
            --else--> they are asked once more, after a while: whoever led it may have died just
              now, or been elected just now, and who heard it then says that it does
            --somebody who is in sync hears one even then--> is handed the leadership; who is in
              maintenance only where nobody else does
        One round at a time, for all groups that wait for one.
Owns:   which groups wait for a round.
Source: decision 0025; Raft thesis 6.2 (who is only partly cut off)."""

import asyncio
import logging
from collections.abc import Iterable

from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.operations.single_flight import SingleFlight
from strandline.controller.decision import maintained_of
from strandline.controller.reports import Question, Reports
from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId, GroupId
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica

ELECTION_TIMEOUTS = 2
"""So many of them lie between the two times: enough to notice who died, and to elect another."""

_log = logging.getLogger("strandline.broker")


class LeaderStepDown:
    """See the module; one per broker."""

    def __init__(self, replication: Replication, controller: ControllerHost) -> None:
        self._replication = replication
        self._controller = controller
        self._single_flight = SingleFlight()
        # Groups led here of which a command was not answered.
        self._unanswered: set[GroupId] = set()

    def stop(self) -> None:
        """Give up what is under way."""
        self._single_flight.stop()

    def on_unanswered(self, group: GroupId) -> None:
        """No controller could be reached in time for this group, which is led here."""
        self._unanswered.add(group)
        if not self._single_flight.is_under_way:
            self._single_flight.begin(self._give_way)

    async def _give_way(self) -> None:
        while self._unanswered:
            groups, self._unanswered = sorted(self._unanswered), set()
            if await self._hearing(groups) is None:
                continue
            pause_ms = ELECTION_TIMEOUTS * self._replication.settings.election_timeout_ms
            await asyncio.sleep(pause_ms / 1000)
            hearing = await self._hearing(groups)
            if hearing is not None:
                for replica in self._led(groups):
                    self._hand_over(replica, hearing)

    async def _hearing(self, groups: Iterable[GroupId]) -> set[BrokerId] | None:
        """Which of the voters of these groups hear a controller; None where this broker reaches
        it."""
        voters = {one for led in self._led(groups) for one in led.configuration.all_voters}
        asked = voters | {self._controller.leader_id}
        asked -= {self._replication.self_id, NO_BROKER}
        question = Question(logs=(CONTROLLER_GROUP,))
        told = await self._controller.reporting.ask(asked, question, keeps_room=False)
        hearing = hears_controller(told)
        is_reached = self._controller.is_active or self._controller.leader_id in hearing
        return None if is_reached else hearing

    def _led(self, groups: Iterable[GroupId]) -> list[Replica]:
        found = map(self._replication.replicas.get, groups)
        return [one for one in found if one is not None and one.is_leader]

    def _hand_over(self, replica: Replica, hearing: set[BrokerId]) -> None:
        avoid = set(replica.configuration.all_voters) - hearing
        to = replica.hand_over(avoid | maintained_of(self._controller.cluster))
        if to == NO_BROKER:
            to = replica.hand_over(avoid)
        if to != NO_BROKER:
            _log.warning(
                "%s: no controller is reached from here, and it is needed; broker %d, which hears "
                "one, is to lead",
                replica.name,
                to,
            )


def hears_controller(reports: Reports) -> set[BrokerId]:
    """Who of those that told of the controller's group hears who leads it, or leads it."""
    told = {one: report.logs.get(CONTROLLER_GROUP) for one, report in reports.items()}
    return {one for one, log in told.items() if log is not None and log.is_led}
