"""Carries out, on the leader of each partition, what the controller says of its replicas.

Why:    brokers come and go, and leaders with them, in the middle of every move: whoever leads goes
        on from what is written, and nobody has to remember what was under way.
How:    what is written is the group's configuration and the state's target, grant and version:

            target              --> who is added is an observer of the group
            target, in step     --> a grant is asked for
            grant, in step      --> a configuration with the grant's version, joint where voters
                                    come or go; the core finishes
            that is committed   --> reported as stable
            grant, not in step  --> after a while others are asked for in its place: those that are
                                    wanted by now, or the voters as they are
            nothing wanted      --> no observers but the permanent ones; and the same voters again,
                                    with a floor of their write quorum, or without (`floors`)

        One step at a time, tried again while there is one to make, also where it has failed: each
        group for itself. "In step": every broker that is added keeps up, and has what made it a
        member (`Replica.is_ready_to_vote`), and so does a write quorum of the new voters: else what
        producers wait for would wait for who catches up.
            What another grant has taken the place of was never begun by this leader, and perhaps by
        another one: whoever leads by it goes on to the last one from there.
Owns:   which groups are looked at again, and what is asked of the controller.
Source: decisions 0009, 0017 and 0029; design section 6."""

import asyncio
import logging
from collections.abc import Callable, Collection

from msgspec import UNSET

from strandline.base.clock import Clock, Timer
from strandline.base.errors import ApiError
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.groups.blocked_grants import BlockedGrants
from strandline.broker.groups.leader_step_down import LeaderStepDown
from strandline.broker.groups.promised_write_quorums import PromisedWriteQuorums
from strandline.broker.groups.voter_reconciliation import (
    Choice,
    Health,
    Lag,
    StandIns,
    VoterReconciliation,
)
from strandline.broker.leadership.leader_ranks import LeaderRanks
from strandline.config.topic import TopicConfig
from strandline.controller.arbitration.promotion import Bounds, Code, Verdict
from strandline.controller.commands import Command, Refused, ReportVoters, RequestVoters
from strandline.controller.outages.domains import is_region
from strandline.controller.records import (
    ReassignmentSet,
    Record,
    VotersGranted,
    VotersStable,
)
from strandline.model.cluster import Cluster, Partition, Roles, Ruling
from strandline.model.ids import NO_BROKER, BrokerId, GroupId, grant_of
from strandline.raft.group.configuration import Configuration
from strandline.replication.host.replication import Replication
from strandline.replication.leader.replica_status import lag_of, should_give_way
from strandline.replication.replica.replica import Replica

LOOK_INTERVAL_MS = 100
ATTENDANCE_INTERVAL_MS = 500
"""How often it is looked whether another broker has fallen silent, or is heard again."""
ATTENDANCE_ROUND = 10
"""So many times later all groups whose voters may change are looked at: somebody may lag."""
ASK_TIMEOUT_MS = 5_000

_log = logging.getLogger("strandline.broker")


class Moving:
    """See the module. `adjust` calls back `adjust` here, with what belongs to the group."""

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
        self._leader_ranks = leader_ranks
        self._adjust = adjust
        self._leader_step_down = LeaderStepDown(replication, controller)
        # Groups that are, or may be, led here, and not where they are wanted.
        self._open: set[GroupId] = set()
        # Those of which it was said that the last step went wrong.
        self._failed: set[GroupId] = set()
        self._asking: dict[GroupId, asyncio.Task[None]] = {}
        self._timer: Timer | None = None
        self._acting = VoterReconciliation(
            clock, patience_ratio=replication.settings.patience_ratio
        )
        self._floors = PromisedWriteQuorums(replication, self._acting)
        self._blocked_grants = BlockedGrants(clock)
        # What was logged last of the observers of groups led here.
        self._told: dict[GroupId, tuple[Code, BrokerId | None]] = {}
        # Groups led here of which other members may come to vote.
        self._attended: set[GroupId] = set()
        self._silent: frozenset[BrokerId] = frozenset()
        self._attendance_count = 0
        self._attendance_timer: Timer | None = None
        controller.on_applied.append(self._on_applied)

    def stop(self) -> None:
        """Move nothing any more."""
        for timer in (self._timer, self._attendance_timer):
            if timer is not None:
                timer.cancel()
        for task in self._asking.values():
            task.cancel()
        self._leader_step_down.stop()

    def adjust(self, replica: Replica, partition: Partition, config: TopicConfig) -> None:
        """Make the next step towards what is wanted of a group led here, if it can be made now."""
        replica.place(partition)
        if config.voters_shrink_enable:
            self._attend(replica.group)
        try:
            is_done = self._step(replica, partition, config)
        except (
            Exception
        ) as error:  # A group's boundary: those behind it are looked at all the same.
            self._tell_once(replica, error)
            is_done = False
        else:
            self._failed.discard(replica.group)
        if not is_done:
            self._look_at(replica.group)

    def _tell_once(self, replica: Replica, error: Exception) -> None:
        """Until it has gone well again: it is tried many times."""
        if replica.group not in self._failed:
            self._failed.add(replica.group)
            message = f"{replica.name}: its members cannot be made what is wanted"
            context = {"message": message, "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def _step(self, replica: Replica, partition: Partition, config: TopicConfig) -> bool:
        """Whether nothing is left to be done."""
        present = replica.configuration
        if replica.is_busy or grant_of(replica.epoch) != partition.grant:
            return False  # The second: fenced off, or the state known here is behind.
        if config.voters_shrink_enable and should_give_way(replica):
            self._give_way(replica, partition)
            return False
        is_stuck = config.voters_shrink_enable and self._is_stuck(replica)
        if self._floors.has_to_go(replica, config, is_stuck=is_stuck):
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
                floor=self._floors.begun(replica, config, partition.pending),
            )
            self._blocked_grants.note_begun(partition)
        elif self._blocked_grants.is_due(partition):
            self._ask_for_others(replica, partition, config)
        return False

    def _give_way(self, replica: Replica, partition: Partition) -> None:
        to = replica.hand_over(avoid=partition.observers)
        if to == NO_BROKER:
            to = replica.hand_over()
        if to != NO_BROKER:
            text = "%s: nothing is flushed here, and all wait for it; broker %d is to lead"
            _log.warning(text, replica.name, to)

    def _ask_for_wanted(self, replica: Replica, partition: Partition, config: TopicConfig) -> bool:
        """Have the controller grant who is wanted, or who should vote meanwhile; whether that is so
        already."""
        asked = partition.wanted
        given_up = self._controller.cluster.given_up(partition)
        may_ask = partition.is_moving and given_up.isdisjoint(asked.voters)
        if not (may_ask and self._are_in_step(replica, partition, asked)):
            choice = self._should_act(replica, partition, config)
            asked = partition.roles.acted_by(choice.voters)
            self._tell(replica, choice.verdict)
            if choice.verdict is not None and choice.verdict.code is Code.HAND_OVER:
                if replica.hand_over(avoid=partition.observers) != NO_BROKER:
                    self._acting.note_handed_over(replica.group)
                return False
            if set(asked.voters) == set(partition.voters):
                is_settled = choice.is_settled and not partition.is_moving
                return is_settled and not self._ask_for_floor(replica, partition, config)
            if not self._are_in_step(replica, partition, asked):
                return False
        version, epoch = partition.version, replica.epoch
        self._ask(
            RequestVoters(partition.group, version, asked.voters, asked.observers, epoch),
        )
        return False

    def _ask_for_floor(self, replica: Replica, partition: Partition, config: TopicConfig) -> bool:
        """Have the same voters granted anew where they can promise another floor."""
        floor = self._floors.wanted(replica, config, partition.voters)
        if floor in (0, partition.floor):
            return False
        self._ask(_same_voters(replica, partition, floor))
        return True

    def _withdraw(self, replica: Replica, partition: Partition, *, is_stuck: bool) -> None:
        """Go on under a new version, that promises nothing, once that is granted."""
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
        """Ask for what would be asked for now, in the place of a grant that cannot be begun; where
        that is nothing, for the voters as they are. What is still wanted is asked for again once it
        can be begun: until then it would be counted on in an outage."""
        wanted, granted = partition.wanted, partition.granted
        asked = wanted
        if not partition.is_moving or not self._are_in_step(replica, partition, wanted):
            asked = partition.roles.acted_by(self._should_act(replica, partition, config).voters)
        if asked.is_alike(granted) or not self._are_in_step(replica, partition, asked):
            return
        is_kept = set(asked.voters) == set(partition.voters)
        is_still_wanted = is_kept and granted.is_alike(wanted)
        if not self._blocked_grants.is_due(partition, is_still_wanted=is_still_wanted):
            return
        command = RequestVoters(
            partition.group,
            partition.version,
            asked.voters,
            asked.observers,
            replica.epoch,
            partition.last_version,
        )
        if self._blocked_grants.note_due(partition, is_still_wanted=is_still_wanted):
            _log.info("%s: voters %s cannot begin", partition.name, granted.voters)
        self._ask(command)

    def _tell(self, replica: Replica, verdict: Verdict | None) -> None:
        """Log what is done about observers, or why nothing is, each once."""
        if verdict is None or verdict.code is Code.HEALING:
            return
        if verdict.code is Code.ENOUGH:
            self._told.pop(replica.group, None)
            return
        told = verdict.code, verdict.broker
        if self._told.get(replica.group) != told:
            self._told[replica.group] = told
            whom = "" if verdict.broker is None else f" broker {verdict.broker}"
            _log.info("%s: %s%s: %s", replica.name, verdict.code, whom, verdict.text)

    def _is_stuck(self, replica: Replica) -> bool:
        """Whether voters that are lost are needed to commit anything, that they leave included,
        though a majority is there: a majority is enough then, and acks=all is refused meanwhile."""
        return self._acting.is_stuck(
            replica.group,
            replica.self_id,
            replica.configuration,
            self._health(replica),
        )

    def _health(self, replica: Replica) -> Health:
        assert replica.leading is not None
        return Health(
            keeps_up=replica.may_count,
            is_heard=self._replication.is_peer_alive,
            lacks_ms=replica.leading.lacks_ms,
            lag_ms=replica.lag_limit_ms,
        )

    def _should_act(self, replica: Replica, partition: Partition, config: TopicConfig) -> Choice:
        """Who of those who hold the log should vote now."""
        if not config.voters_shrink_enable:
            return self._own_voters(partition, config.min_insync_replicas)
        return self._acting.choose(
            partition,
            replica.self_id,
            self._health(replica),
            min_insync=config.min_insync_replicas,
            is_ready=replica.is_ready_to_vote,
            stand_ins=self._stand_ins(replica, partition, config),
        )

    def _own_voters(self, partition: Partition, min_insync: int) -> Choice:
        """Where nobody leaves for being lost: all that were not given up; and an observer that was
        seated, while these are too few for acks=all."""
        given_up = self._controller.cluster.given_up(partition)
        left = tuple(one for one in partition.replicas if one not in given_up)
        if len(left) < min(max(min_insync, 1), len(partition.replicas)):
            left += tuple(one for one in partition.voters if one in partition.observers)
        return Choice(left or partition.voters, is_settled=not given_up)

    def _stand_ins(
        self, replica: Replica, partition: Partition, config: TopicConfig
    ) -> StandIns | None:
        """What the promotion of observers goes by; None where there is none to be thought of."""
        cluster = self._controller.cluster
        policy = self._leader_ranks.of(cluster.topics[partition.topic], cluster).promotion
        observers = partition.observers
        if not observers or not (policy or any(one in observers for one in partition.voters)):
            return None
        brokers = cluster.brokers
        return StandIns(
            policy=policy,
            min_insync=config.min_insync_replicas,
            bounds=bounds_of(config),
            lag=lambda broker: Lag(*lag_of(replica, broker)),
            levels=self._replication.nearness.levels,
            regions={
                one: brokers[one].labels.region for one in partition.replicas if one in brokers
            },
            regions_down=_regions_down(cluster),
        )

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
                _log.info("the controller refuses %s: %s", command, answer.message)
                if isinstance(command, RequestVoters) and command.floor is not UNSET:
                    self._floors.on_refused(group)
        except ApiError as error:
            _log.info("%s: %s", command, error)
            self._leader_step_down.on_unanswered(group)
        finally:
            self._asking.pop(group, None)

    # ---- looking again ---------------------------------------------------------------------------

    def _on_applied(self, record: Record) -> None:
        if isinstance(record, ReassignmentSet | VotersGranted | VotersStable):
            self._look_at(record.group)

    def _look_at(self, group: GroupId) -> None:
        self._open.add(group)
        if self._timer is None:
            self._timer = self._clock.call_later(LOOK_INTERVAL_MS, self._look)

    def _look(self) -> None:
        self._timer = None
        groups, self._open = sorted(self._open), set()
        for group in groups:
            replica = self._replication.replicas.get(group)
            if replica is not None and replica.is_leader:  # Others look once they lead.
                self._adjust(replica)
            else:
                self._blocked_grants.forget(group)
                self._failed.discard(group)

    # ---- who keeps up ----------------------------------------------------------------------------

    def _attend(self, group: GroupId) -> None:
        self._attended.add(group)
        if self._attendance_timer is None:
            self._attendance_timer = self._clock.call_later(
                ATTENDANCE_INTERVAL_MS, self._look_who_is_there
            )

    def _look_who_is_there(self) -> None:
        self._attendance_timer = None
        self._attendance_count += 1
        for group in self._floors.ailing():
            self._look_at(group)
        brokers = self._controller.cluster.brokers
        silent = frozenset(one for one in brokers if not self._replication.is_peer_alive(one))
        if silent == self._silent and self._attendance_count % ATTENDANCE_ROUND:
            self._attend_again()
            return
        self._silent = silent
        for group in sorted(self._attended):
            replica = self._replication.replicas.get(group)
            if replica is not None and replica.is_leader:
                self._look_at(group)
            else:
                self._attended.discard(group)
                self._acting.forget(group)
                self._blocked_grants.forget(group)
                self._told.pop(group, None)
        self._attend_again()

    def _attend_again(self) -> None:
        if self._attended:
            self._attend(next(iter(self._attended)))


def bounds_of(config: TopicConfig) -> Bounds:
    """What a topic asks of observers that stand in."""
    return Bounds(
        lag_count_max=config.observer_promotion_lag_max_records,
        lag_ms_max=config.observer_promotion_lag_max_ms,
        ready_ms=config.observer_promotion_ready_ms,
        demote_ms=config.observer_demotion_delay_ms,
    )


def _same_voters(replica: Replica, partition: Partition, floor: int) -> RequestVoters:
    """To be granted the voters that there are, under a new version, for another floor."""
    present = replica.configuration.voters
    asked = partition.roles.acted_by(present)
    return RequestVoters(
        partition.group,
        partition.version,
        asked.voters,
        asked.observers,
        replica.epoch,
        partition.last_version if partition.pending else 0,
        floor,
    )


def _regions_down(cluster: Cluster) -> frozenset[str]:
    return frozenset(
        domain[0]
        for domain, one in cluster.outages.items()
        if is_region(domain) and (one.is_down or one.ruling is Ruling.LOST)
    )


def _is_quorum_ready(replica: Replica, configuration: Configuration) -> bool:
    """Whether a write quorum of it keeps up."""
    return configuration.can_commit(
        [one for one in configuration.all_voters if replica.is_ready_to_vote(one)]
    )


def _min_insync(replica: Replica, config: TopicConfig) -> int:
    """What the write quorum should be now: as the topic asks, where voters may leave not before
    enough of them keep up, or the change itself would wait for who has to leave."""
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
    """Who receives the log beside these voters. `is_begun`: whether they are those that were
    granted; then who held it before and is not among those gets nothing, nor does whoever was
    declared lost, until it has started anew."""
    members = {*partition.wanted.all, *partition.granted.all}
    if not is_begun:
        members.update(partition.roles.all)
    return tuple(sorted(members.difference(voters, given_up)))
