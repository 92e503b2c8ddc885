"""Leaders that need the controller and cannot reach it hand over to a voter that can.

Why:    a leader that is cut off from the controller alone goes on serving, but can change nothing:
        no voter leaves, no observer is promoted, no replica moves. Its followers may well hear the
        controller.
How:    1. A leader's command was not answered in time.
        2. This broker asks the controller and the other voters whether they hear a controller. If
           the controller answers, or is here, it was only slow: nothing happens.
        3. After two election time-outs this broker asks again: a controller that has just died is
           noticed by then, and the next one elected.
        4. Still cut off: the leader hands over to an in-sync voter that hears a controller. A
           broker in maintenance is chosen only if no other hears one.
        One round at a time serves all groups that wait.
Owns:   which groups wait for a round.
Source: decision 0025; Raft thesis 6.2 (partly cut-off servers)."""

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
"""How many of them lie between the two questions: enough to notice a death and to elect."""

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
        """Stop the round under way."""
        self._single_flight.stop()

    def on_unanswered(self, group: GroupId) -> None:
        """No controller could be reached in time for this group, which is led here."""
        self._unanswered.add(group)
        if not self._single_flight.is_under_way:
            self._single_flight.begin(self._run_rounds)

    async def _run_rounds(self) -> None:
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
        """Which voters of these groups hear a controller; None if this broker reaches it."""
        voters = {one for led in self._led(groups) for one in led.configuration.all_voters}
        brokers = voters | {self._controller.leader_id}
        brokers -= {self._replication.self_id, NO_BROKER}
        question = Question(logs=(CONTROLLER_GROUP,))
        reports = await self._controller.reporting.ask(brokers, question, keeps_room=False)
        hearing = hears_controller(reports)
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
                "%s: a change needs the controller, which this broker cannot reach: handing "
                "over to broker %d, which hears one",
                replica.name,
                to,
            )


def hears_controller(reports: Reports) -> set[BrokerId]:
    """The brokers whose reports say that they lead the controller's group, or hear its leader."""
    logs = {one: report.logs.get(CONTROLLER_GROUP) for one, report in reports.items()}
    return {one for one, log in logs.items() if log is not None and log.is_led}
