"""Changes the members of each group led here, step by step, as the controller's state asks.

Why:    brokers come and go in the middle of every move, and leaders with them: each new leader
        continues from what is written, and no broker has to remember what was under way.
How:    written are the group's configuration, and the state's target, grant and version. The leader
        takes one step at a time:

            target                  --> added brokers become observers of the group
            target, in step         --> ask the controller for a grant of the target
            grant, in step          --> propose the granted configuration, joint where voters change
            grant, committed        --> report it to the controller as stable
            grant, long not in step --> ask for other voters in its place: the ones wanted now, or
                                        the present ones
            nothing wanted          --> keep only permanent observers; have the same voters granted
                                        again with or without a promised write quorum

        "In step": each added broker keeps up and has the entry that made it a member
        (`Replica.is_ready_to_vote`), and so does a write quorum of the new voters: otherwise
        producers would wait for replicas that catch up. A step that cannot be made, or that failed,
        is tried again, for each group by itself.
            This leader never began a grant that another one has replaced. An earlier leader may
        have: a leader with such a configuration continues from there to the last grant.
Owns:   which groups are looked at again, and the commands that wait for the controller.
Source: decisions 0009, 0017 and 0029; design section 6."""

import asyncio
import logging
from collections.abc import Callable, Collection
from uuid import UUID

from msgspec import UNSET

from strandline.base.clock import Clock, Timer
from strandline.base.errors import ApiError
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.groups.blocked_grants import BlockedGrants
from strandline.broker.groups.leader_step_down import LeaderStepDown
from strandline.broker.groups.promised_write_quorums import PromisedWriteQuorums
from strandline.broker.groups.wanted_voters import WantedVoters
from strandline.broker.leadership.leader_ranks import LeaderRanks
from strandline.config.topic import TopicConfig
from strandline.controller.arbitration.promotion import Code, Verdict
from strandline.controller.commands import (
    Command,
    Refused,
    ReportVoters,
    RequestVoters,
    words_of,
)
from strandline.controller.records import (
    ReassignmentSet,
    Record,
    VotersGranted,
    VotersStable,
)
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import NO_BROKER, BrokerId, GroupId, grant_of
from strandline.raft.group.configuration import Configuration
from strandline.replication.host.replication import Replication
from strandline.replication.leader.replica_status import should_give_way
from strandline.replication.replica.replica import Replica

LOOK_INTERVAL_MS = 100
WATCH_INTERVAL_MS = 500
"""How often the leader checks whether a broker has fallen silent or is heard again."""
WATCH_ALL_EACH = 10
"""At every so many-th check the leader looks at all groups whose voters may change: one may lag."""
ASK_TIMEOUT_MS = 5_000

_log = logging.getLogger("strandline.broker")


class Moving:
    """See the module. `adjust(replica)` finds partition and configuration of a group, and calls
    `Moving.adjust` with them."""

    def __init__(
        self,
        *,
        clock: Clock,
        replication: Replication,
        controller: ControllerHost,
        leader_ranks: LeaderRanks,
        adjust: Callable[[Replica], None],
    ) -> None:
        self._clock = clock
        self._replication = replication
        self._controller = controller
        self._adjust = adjust
        self._leader_step_down = LeaderStepDown(replication, controller)
        # Groups that may be led here, and have a step left to make.
        self._unsettled: set[GroupId] = set()
        # Groups whose last step failed, which was logged.
        self._failed: set[GroupId] = set()
        self._asking: dict[GroupId, asyncio.Task[None]] = {}
        self._timer: Timer | None = None
        self._voters = WantedVoters(
            clock=clock, replication=replication, controller=controller, leader_ranks=leader_ranks
        )
        self._write_quorums = PromisedWriteQuorums(replication, self._voters.reconciliation)
        self._blocked_grants = BlockedGrants(clock)
        # {group led here: what was logged last of its observers}
        self._logged: dict[GroupId, tuple[Code, BrokerId | None]] = {}
        # Groups led here whose voters may leave and return.
        self._watched: set[GroupId] = set()
        self._silent: frozenset[BrokerId] = frozenset()
        self._watch_count = 0
        self._watch_timer: Timer | None = None
        controller.on_applied.append(self._on_applied)
        controller.on_adopted.append(self._on_adopted)

    def stop(self) -> None:
        """Change no members any more."""
        for timer in (self._timer, self._watch_timer):
            if timer is not None:
                timer.cancel()
        for task in self._asking.values():
            task.cancel()
        self._leader_step_down.stop()

    def adjust(self, replica: Replica, partition: Partition, config: TopicConfig) -> None:
        """Make the next step towards the wanted members of a group led here, if that is possible
        now."""
        replica.place(partition)
        if config.voters_shrink_enable:
            self._watch(replica.group)
        try:
            is_done = self._step(replica, partition, config)
        except Exception as error:  # A group's boundary: the next groups are looked at anyway.
            self._report_once(replica, error)
            is_done = False
        else:
            self._failed.discard(replica.group)
        if not is_done:
            self._look_at(replica.group)

    def _report_once(self, replica: Replica, error: Exception) -> None:
        """Log a failed step once, until a step succeeds: it is tried many times."""
        if replica.group not in self._failed:
            self._failed.add(replica.group)
            message = f"{replica.name}: the next change of its members failed; it is tried again"
            context = {"message": message, "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def _step(self, replica: Replica, partition: Partition, config: TopicConfig) -> bool:
        """Whether nothing is left to be done."""
        present = replica.configuration
        if replica.is_busy or grant_of(replica.epoch) != partition.grant:
            return False  # The second: fenced off, or the state known here is behind.
        if config.voters_shrink_enable and should_give_way(replica):
            self._hand_over_stalled(replica, partition)
            return False
        is_stuck = config.voters_shrink_enable and self._voters.is_stuck(replica)
        if self._write_quorums.has_to_go(replica, config, is_stuck=is_stuck):
            self._withdraw(replica, partition, is_stuck=is_stuck)
            return False
        if is_stuck:
            replica.change_configuration(
                voters=present.voters,
                observers=present.observers,
                min_insync=1,
                version=present.version,
            )
            return False
        if not replica.raft.may_serve or present.is_joint:
            return False
        if present.version > partition.last_version:
            return False  # The state known here is behind.
        is_begun = partition.version < present.version == partition.last_version
        given_up = self._controller.cluster.given_up(partition)
        observers = _observers(partition, present.voters, given_up, is_begun=is_begun)
        min_insync = _min_insync(replica, config)
        is_kept = set(present.observers) == set(observers)
        if not is_kept or present.min_insync != min_insync:
            replica.change_configuration(
                voters=present.voters,
                observers=observers,
                min_insync=min_insync,
                version=present.version,
            )
            return False
        if is_begun:
            if replica.raft.configuration_index <= replica.raft.commit:
                self._ask(
                    ReportVoters(
                        partition.group,
                        present.version,
                        present.voters,
                        replica.epoch,
                        present.floor,
                    )
                )
            return False
        if not partition.pending:
            return self._ask_for_wanted(replica, partition, config)
        if self._are_in_step(replica, partition, partition.granted):
            replica.change_configuration(
                voters=partition.pending,
                observers=_observers(partition, partition.pending, given_up, is_begun=True),
                min_insync=min_insync,
                version=partition.last_version,
                floor=self._write_quorums.begun(replica, config, partition.pending),
            )
            self._blocked_grants.note_begun(partition)
        elif self._blocked_grants.is_due(partition):
            self._ask_for_others(replica, partition, config)
        return False

    def _hand_over_stalled(self, replica: Replica, partition: Partition) -> None:
        to = replica.hand_over(avoid=partition.observers)
        if to == NO_BROKER:
            to = replica.hand_over()
        if to != NO_BROKER:
            text = (
                "%s: this leader's disk flushes nothing and holds up every write; broker %d leads"
            )
            _log.warning(text, replica.name, to)

    def _ask_for_wanted(self, replica: Replica, partition: Partition, config: TopicConfig) -> bool:
        """Ask for the wanted members, or for the voters that should vote meanwhile; whether the
        group has these already."""
        roles = partition.wanted
        given_up = self._controller.cluster.given_up(partition)
        may_ask = partition.is_moving and given_up.isdisjoint(roles.voters)
        if not (may_ask and self._are_in_step(replica, partition, roles)):
            choice = self._voters.choose(replica, partition, config)
            roles = partition.roles.acted_by(choice.voters)
            self._log_verdict(replica, choice.verdict)
            if choice.verdict is not None and choice.verdict.code is Code.HAND_OVER:
                if replica.hand_over(avoid=partition.observers) != NO_BROKER:
                    self._voters.reconciliation.note_handed_over(replica.group)
                return False
            if set(roles.voters) == set(partition.voters):
                is_settled = choice.is_settled and not partition.is_moving
                return is_settled and not self._ask_for_write_quorum(replica, partition, config)
            if not self._are_in_step(replica, partition, roles):
                return False
        version, epoch = partition.version, replica.epoch
        self._ask(
            RequestVoters(partition.group, version, roles.voters, roles.observers, epoch),
        )
        return False

    def _ask_for_write_quorum(
        self, replica: Replica, partition: Partition, config: TopicConfig
    ) -> bool:
        """Ask for the same voters again where they can promise another write quorum; whether that
        was asked."""
        floor = self._write_quorums.wanted(replica, config, partition.voters)
        if floor in (0, partition.floor):
            return False
        self._ask(_same_voters(replica, partition, floor))
        return True

    def _withdraw(self, replica: Replica, partition: Partition, *, is_stuck: bool) -> None:
        """Change to a version of the same voters that promises no write quorum, once granted."""
        present, last = replica.configuration, partition.last_version
        if present.version > last:
            return  # The state known here is behind.
        if present.version < last and set(partition.pending) == set(present.voters):
            replica.change_configuration(
                voters=present.voters,
                observers=present.observers,
                min_insync=1 if is_stuck else present.min_insync,
                version=last,
            )
        else:
            self._ask(_same_voters(replica, partition, 0))

    def _ask_for_others(self, replica: Replica, partition: Partition, config: TopicConfig) -> None:
        """Ask for other voters in the place of a grant that cannot begin: the ones that are wanted
        now, or else the present ones. If the blocked grant is still wanted, it is asked for again
        once it can begin: until then an outage would count on it."""
        wanted, granted = partition.wanted, partition.granted
        roles = wanted
        if not partition.is_moving or not self._are_in_step(replica, partition, wanted):
            roles = partition.roles.acted_by(self._voters.choose(replica, partition, config).voters)
        if roles.is_alike(granted) or not self._are_in_step(replica, partition, roles):
            return
        is_kept = set(roles.voters) == set(partition.voters)
        is_still_wanted = is_kept and granted.is_alike(wanted)
        if not self._blocked_grants.is_due(partition, is_still_wanted=is_still_wanted):
            return
        command = RequestVoters(
            partition.group,
            partition.version,
            roles.voters,
            roles.observers,
            replica.epoch,
            partition.last_version,
        )
        if self._blocked_grants.note_due(partition, is_still_wanted=is_still_wanted):
            text = "%s: the granted voters %s cannot begin yet: asking for others"
            _log.info(text, partition.name, ", ".join(map(str, granted.voters)))
        self._ask(command)

    def _log_verdict(self, replica: Replica, verdict: Verdict | None) -> None:
        """Log each decision about observers once, with its reason."""
        if verdict is None or verdict.code is Code.HEALING:
            return
        if verdict.code is Code.ENOUGH:
            self._logged.pop(replica.group, None)
            return
        verdict_key = verdict.code, verdict.broker
        if self._logged.get(replica.group) != verdict_key:
            self._logged[replica.group] = verdict_key
            name = "" if verdict.broker is None else f" broker {verdict.broker}"
            _log.info("%s: %s%s: %s", replica.name, verdict.code, name, verdict.text)

    @staticmethod
    def _are_in_step(replica: Replica, partition: Partition, roles: Roles) -> bool:
        present, voters = replica.configuration, roles.voters
        known = {*present.voters, *partition.replicas}
        coming = [one for one in voters if one not in known]
        coming += [one for one in roles.observers if one not in partition.roles.all]
        if not all(map(replica.is_ready_to_vote, coming)):
            return False
        return _is_quorum_ready(replica, Configuration(voters, min_insync=present.min_insync))

    # ---- asking the controller -------------------------------------------------------------------

    def _ask(self, command: RequestVoters | ReportVoters) -> None:
        if command.group not in self._asking:
            task = asyncio.get_running_loop().create_task(self._submit(command.group, command))
            self._asking[command.group] = task

    async def _submit(self, group: GroupId, command: Command) -> None:
        try:
            answer = await self._controller.submit(command, timeout_ms=ASK_TIMEOUT_MS)
            if isinstance(answer, Refused):
                words = words_of(command)
                _log.info("the controller refuses to %s: %s", words, answer.message)
                if isinstance(command, RequestVoters) and command.floor is not UNSET:
                    self._write_quorums.on_refused(group)
        except ApiError as error:
            _log.info("cannot %s, trying again: %s", words_of(command), error)
            self._leader_step_down.on_unanswered(group)
        finally:
            self._asking.pop(group, None)

    # ---- looking again ---------------------------------------------------------------------------

    def _on_applied(self, record: Record) -> None:
        if isinstance(record, ReassignmentSet | VotersGranted | VotersStable):
            self._look_at(record.group)

    def _on_adopted(self, _: dict[str, UUID]) -> None:
        for group in self._controller.cluster.groups:
            self._look_at(group)

    def _look_at(self, group: GroupId) -> None:
        self._unsettled.add(group)
        if self._timer is None:
            self._timer = self._clock.call_later(LOOK_INTERVAL_MS, self._look)

    def _look(self) -> None:
        self._timer = None
        groups, self._unsettled = sorted(self._unsettled), set()
        for group in groups:
            replica = self._replication.replicas.get(group)
            if replica is not None and replica.is_leader:  # Others look once they lead.
                self._adjust(replica)
            else:
                self._blocked_grants.forget(group)
                self._failed.discard(group)

    # ---- brokers that fall silent or return ------------------------------------------------------

    def _watch(self, group: GroupId) -> None:
        self._watched.add(group)
        if self._watch_timer is None:
            self._watch_timer = self._clock.call_later(WATCH_INTERVAL_MS, self._look_at_watched)

    def _look_at_watched(self) -> None:
        self._watch_timer = None
        self._watch_count += 1
        for group in self._write_quorums.doubtful():
            self._look_at(group)
        brokers = self._controller.cluster.brokers
        silent = frozenset(one for one in brokers if not self._replication.is_peer_alive(one))
        if silent == self._silent and self._watch_count % WATCH_ALL_EACH:
            self._watch_again()
            return
        self._silent = silent
        for group in sorted(self._watched):
            replica = self._replication.replicas.get(group)
            if replica is not None and replica.is_leader:
                self._look_at(group)
            else:
                self._watched.discard(group)
                self._voters.reconciliation.forget(group)
                self._blocked_grants.forget(group)
                self._logged.pop(group, None)
        self._watch_again()

    def _watch_again(self) -> None:
        if self._watched:
            self._watch(next(iter(self._watched)))


def _same_voters(replica: Replica, partition: Partition, floor: int) -> RequestVoters:
    """The command that asks for the present voters with another promised write quorum."""
    present = replica.configuration.voters
    roles = partition.roles.acted_by(present)
    return RequestVoters(
        partition.group,
        partition.version,
        roles.voters,
        roles.observers,
        replica.epoch,
        partition.last_version if partition.pending else 0,
        floor,
    )


def _is_quorum_ready(replica: Replica, configuration: Configuration) -> bool:
    """Whether a write quorum of this configuration keeps up."""
    return configuration.can_commit(
        [one for one in configuration.all_voters if replica.is_ready_to_vote(one)]
    )


def _min_insync(replica: Replica, config: TopicConfig) -> int:
    """The `min.insync.replicas` that the group should go by now: the topic's. Where voters may
    leave, a higher one has to wait until enough voters keep up: or the change itself would wait for
    a voter that has to leave."""
    present, wanted = replica.configuration, config.min_insync_replicas
    if wanted > present.min_insync and config.voters_shrink_enable:
        after = Configuration(present.voters, min_insync=wanted)
        return wanted if _is_quorum_ready(replica, after) else present.min_insync
    return wanted


def _observers(
    partition: Partition,
    voters: Collection[BrokerId],
    given_up: Collection[BrokerId],
    *,
    is_begun: bool,
) -> tuple[BrokerId, ...]:
    """The brokers that receive the log beside these voters. `is_begun`: the voters are the granted
    ones; then brokers that only held the log before get nothing. A broker that was declared lost
    gets nothing until it has started again."""
    members = {*partition.wanted.all, *partition.granted.all}
    if not is_begun:
        members.update(partition.roles.all)
    return tuple(sorted(members.difference(voters, given_up)))
