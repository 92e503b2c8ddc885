"""Gives groups without a quorum a new leader, while this broker leads the controller.

Why:    half of the replicas is left when a data centre is gone, and holds every acknowledged write;
        but no majority lives, and Raft alone waits for a majority.
How:    `controller.arbitration.grant_progress` decides; this performs its effects. Every 200 ms one
        round looks at all groups of topics whose voters may change (`voters.shrink.enable`), and at
        groups of which a loss was declared. It performs the effects of one kind for all groups
        together, in this order, and feeds each result back before the next kind:

            ask who leads, begin grants, fence members, wait for votes, appoint leaders, notify
            leaders

        So a group goes as far as it can within one round. One round runs at a time.
        Each second a survey asks all brokers that are heard for their `MemberReports`.
Owns:   the progress of each stuck group; the present round and survey; the timer.
Source: design section 6, 2; decisions 0016 and 0020."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from strandline.base.errors import ApiError
from strandline.broker.context import Services
from strandline.broker.operations.single_flight import SingleFlight
from strandline.broker.operations.ticker import Ticker
from strandline.controller.arbitration.grant_progress import (
    AskWhoLeads,
    AwaitVotes,
    Effect,
    Event,
    Facts,
    FenceMembers,
    GrantProgress,
    LeaderReported,
    Looked,
    MembersFenced,
    NoLeaderReported,
    NotifyLeader,
    RecordApplied,
    State,
    VotesReleased,
    continues,
)
from strandline.controller.arbitration.member_reports import MemberReports, Stalled
from strandline.controller.arbitration.sides import Need, Reach
from strandline.controller.commands import AppointLeader, BeginGrant, Command, Refused, words_of
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId
from strandline.network.calls import CallError
from strandline.placement.policy.document import Promotion
from strandline.raft.group.configuration import Configuration
from strandline.replication.liveness.fencing import (
    GROUPS_PER_CALL_MAX,
    FencedGroup,
    GroupAppointment,
    UnableGroups,
)

LOOK_INTERVAL_MS = 200
SURVEY_INTERVAL_MS = 1_000
SUBMIT_TIMEOUT_MS = 5_000
PROMOTING: tuple[Promotion, ...] = ("under-min-isr", "under-replicated")
"""The policies by which observers vote where no region is lost."""

E = TypeVar("E", AskWhoLeads, BeginGrant, FenceMembers, AwaitVotes, AppointLeader, NotifyLeader)

_log = logging.getLogger("strandline.controller")


@dataclass(slots=True)
class _Case:
    """One group in a round, with the last record that the round has read of it."""

    partition: Partition
    progress: GrantProgress


@dataclass(slots=True)
class _Round:
    """Groups in hand, and the effects that are due: {kind: {group: effect}}."""

    cases: dict[GroupId, _Case] = field(default_factory=dict)
    due: dict[type[Effect], dict[GroupId, Effect]] = field(default_factory=dict)

    def add(self, group: GroupId, effects: Iterable[Effect]) -> None:
        """These are to be performed for a group."""
        for effect in effects:
            self.due.setdefault(type(effect), {})[group] = effect

    def take(self, kind: type[E]) -> list[tuple[_Case, E]]:
        """The effects of one kind, which are performed now."""
        effects = self.due.pop(kind, {})
        return [
            (self.cases[group], effect)
            for group, effect in effects.items()
            if isinstance(effect, kind) and group in self.cases
        ]


class Arbitrating:
    """See the module; one per broker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._clock = services.clock
        self._replication = services.replication
        self._ratio = services.replication.settings.patience_ratio
        self.reports = MemberReports(patience_ratio=self._ratio)
        self._progress: dict[GroupId, GrantProgress] = {}
        self._round = SingleFlight()
        self._survey = SingleFlight()
        self._surveyed_ms: int | None = None
        self._ticker = Ticker(
            services.clock,
            self._look,
            interval_ms=LOOK_INTERVAL_MS,
            log=_log,
            failure="cannot grant leaders to groups without a quorum",
        )

    def start(self) -> None:
        """Begin to look."""
        self._ticker.start()

    def stop(self) -> None:
        """End it."""
        self._ticker.stop()
        self._round.stop()
        self._survey.stop()

    def _look(self) -> None:
        if not self._services.controller.is_active:
            self._progress.clear()
            self.reports.clear()
            return
        now = self._clock.monotonic_ms()
        is_due = self._surveyed_ms is None or now - self._surveyed_ms >= SURVEY_INTERVAL_MS
        if is_due and not self._survey.is_under_way:
            self._surveyed_ms = now
            if self._any_may_begin() or self._progress:
                self._survey.begin(self._ask_all)
            else:
                self.reports.clear_survey()
        if not self._round.is_under_way:
            found = self._look_at_groups()
            if found.cases:
                self._round.begin(lambda: self._perform(found))

    # ---- the look --------------------------------------------------------------------------------

    def _look_at_groups(self) -> _Round:
        """Step all groups that need attention; those that something has to be done for."""
        cluster, reports = self._services.cluster, self.reports
        reach = self._reach()
        reports.drop_stalled(cluster.groups)
        before, self._progress = self._progress, {}
        found = _Round()
        for topic in cluster.topics.values():
            topic_may_begin = self._services.topic_configs.of(topic, cluster).voters_shrink_enable
            for partition in topic.partitions:
                group = partition.group
                progress = before.get(group)
                may_begin = topic_may_begin or partition.is_declared
                is_arbitrated = partition.is_fenced or partition.appointment is not None
                is_usual = progress is None and not is_arbitrated
                if is_usual and (
                    not may_begin or continues(partition, reach, reports.able(group, reach.heard))
                ):
                    continue
                facts = self._facts(partition, reach, may_begin=may_begin)
                progress = progress or GrantProgress(facts)
                effects = progress.step(Looked(), facts)
                if progress.state is not State.STABLE:
                    self._progress[group] = progress
                if effects:
                    found.cases[group] = _Case(partition, progress)
                    found.add(group, effects)
        return found

    def _any_may_begin(self) -> bool:
        """Whether any topic allows grants."""
        cluster, configs = self._services.cluster, self._services.topic_configs
        topics = cluster.topics.values()
        return any(configs.of(topic, cluster).voters_shrink_enable for topic in topics)

    def _reach(self) -> Reach:
        """Which brokers are heard now, and which of them are cut off from which."""
        brokers = filter(self._replication.is_peer_alive, self._services.cluster.brokers)
        return self.reports.reach(brokers, self._clock.monotonic_ms())

    def _facts(self, partition: Partition, reach: Reach, *, may_begin: bool = True) -> Facts:
        return Facts(
            partition=partition,
            reach=reach,
            reports=self.reports,
            now_ms=self._clock.monotonic_ms(),
            may_begin=may_begin,
            patience_ratio=self._ratio,
        )

    # ---- the survey ------------------------------------------------------------------------------

    async def _ask_all(self) -> None:
        """Ask which replicas cannot vote, and which brokers do not hear which."""
        reports, groups = self.reports, self._services.cluster.groups

        async def ask(broker: BrokerId) -> tuple[BrokerId, UnableGroups]:
            try:
                answer = await self._replication.fencing.unable(broker)
            except CallError as error:
                _log.debug(
                    "broker %d does not report which replicas cannot vote: %s", broker, error
                )
                reports.note_no_answer(broker, self._clock.monotonic_ms())
                return broker, UnableGroups(())
            reports.note_answer(broker, answer.silent, self._clock.monotonic_ms())
            return broker, answer

        brokers = self._services.cluster.brokers
        heard = [one for one in sorted(brokers) if self._replication.is_peer_alive(one)]
        reports.note_not_heard(heard)
        unable: dict[GroupId, set[BrokerId]] = {}
        stalled: dict[GroupId, Stalled] = {}
        for broker, answer in await asyncio.gather(*map(ask, heard)):
            for group in answer.groups:
                unable.setdefault(group, set()).add(broker)
            for group, some in answer.stalled:
                known = self._replication.leaders.get(group)
                is_leader = known is not None and known.leader == broker  # No earlier one.
                if is_leader and group in groups:
                    stalled[group] = Stalled(groups[group].grant, some)
        reports.note_survey(
            unable=unable if self._any_may_begin() else {}, stalled=stalled, groups=groups
        )

    # ---- the round -------------------------------------------------------------------------------

    async def _perform(self, found: _Round) -> None:
        try:
            await self._ask_who_leads(found)
            await asyncio.gather(*(self._begin(*one) for one in found.take(BeginGrant)))
            self._read_records(found)
            await self._fence(found)
            await self._choose(found)
            self._read_records(found)
            await asyncio.gather(*(self._notify(one) for one, _ in found.take(NotifyLeader)))
        except ApiError as error:
            _log.info("grants wait, the controller did not answer: %s", error)

    def _step(self, found: _Round, results: Iterable[tuple[_Case, Event]]) -> None:
        """Feed results back."""
        reach = self._reach()
        for case, event in results:
            effects = case.progress.step(event, self._facts(case.partition, reach))
            found.add(case.partition.group, effects)

    def _read_records(self, found: _Round) -> None:
        """Continue from what the controller has committed meanwhile; groups may be gone by then."""
        groups = self._services.cluster.groups
        found.cases = {group: case for group, case in found.cases.items() if group in groups}
        for group, case in found.cases.items():
            case.partition = groups[group]
        self._step(found, [(case, RecordApplied()) for case in found.cases.values()])

    async def _ask_who_leads(self, found: _Round) -> None:
        """Ask all members that are heard: a leader that is cut off from here may serve, or have
        been granted voters that it continues without."""
        cases = [case for case, _ in found.take(AskWhoLeads)]
        questions: dict[BrokerId, list[GroupId]] = {}
        for case in cases:
            for broker in self._members_alive(case.partition):
                questions.setdefault(broker, []).append(case.partition.group)

        async def ask(broker: BrokerId) -> frozenset[GroupId]:
            groups = questions[broker]
            try:
                answer = await self._replication.fencing.led(broker, groups)
            except CallError as error:
                _log.info("broker %d does not report which leaders it knows: %s", broker, error)
                is_mute = self.reports.is_mute(broker, self._clock.monotonic_ms())
                return frozenset(() if is_mute else groups)
            self.reports.note_answer(broker, answer.silent, self._clock.monotonic_ms())
            return frozenset(answer.groups)

        led = frozenset().union(*await asyncio.gather(*map(ask, sorted(questions))))
        led -= self.reports.stalled.keys()
        self._step(
            found,
            [
                (case, LeaderReported() if case.partition.group in led else NoLeaderReported())
                for case in cases
            ],
        )

    async def _begin(self, case: _Case, command: BeginGrant) -> None:
        _log.warning(
            "%s: no majority of its voters is reachable; the reachable ones hold every "
            "acknowledged record: the controller begins grant %d",
            case.partition.name,
            command.grant + 1,
        )
        await self._submit(command)

    async def _fence(self, found: _Round) -> None:
        """Fence the members that are heard."""
        cases = [case for case, _ in found.take(FenceMembers) if case.partition.is_fenced]
        questions: dict[BrokerId, list[tuple[GroupId, int]]] = {}
        for case in cases:
            for broker in self._members_alive(case.partition):
                question = case.partition.group, case.partition.grant
                questions.setdefault(broker, []).append(question)
        answers: dict[GroupId, dict[BrokerId, FencedGroup]] = {}
        for broker, some in await asyncio.gather(
            *(self._fence_at(broker, questions[broker]) for broker in sorted(questions))
        ):
            for one in some:
                answers.setdefault(one.group, {})[broker] = one
        results: list[tuple[_Case, Event]] = []
        for case in cases:
            fenced = answers.get(case.partition.group, {})
            results.append((case, MembersFenced(fenced, self._need(case.partition))))
        self._step(found, results)

    async def _fence_at(
        self, broker: BrokerId, groups: list[tuple[GroupId, int]]
    ) -> tuple[BrokerId, list[FencedGroup]]:
        found: list[FencedGroup] = []
        try:
            for at in range(0, len(groups), GROUPS_PER_CALL_MAX):
                some = groups[at : at + GROUPS_PER_CALL_MAX]
                found += await self._replication.fencing.fence(broker, some)
        except CallError as error:
            _log.info("broker %d was not fenced: %s", broker, error)
        return broker, found

    def _need(self, partition: Partition) -> Need:
        """What acks=all takes."""
        cluster = self._services.cluster
        topic = cluster.topics[partition.topic]
        least = self._services.topic_configs.of(topic, cluster).min_insync_replicas
        promotion = self._services.leader_ranks.of(topic, cluster).promotion
        return Need(min(least, len(partition.replicas)), promotes=promotion in PROMOTING)

    async def _choose(self, found: _Round) -> None:
        """Have the controller appoint leaders, once the votes of the fenced members are free."""
        waits = found.take(AwaitVotes)
        if not waits:
            return
        await asyncio.sleep(max(effect.ms for _, effect in waits) / 1000)
        self._step(found, [(case, VotesReleased(effect.side)) for case, effect in waits])
        await asyncio.gather(*(self._submit(command) for _, command in found.take(AppointLeader)))

    async def _notify(self, case: _Case) -> None:
        """Tell the chosen leader that it leads; it may know that already."""
        partition = case.partition
        appointment = partition.appointment
        if appointment is None:
            return
        cluster = self._services.cluster
        config = self._services.topic_configs.of(cluster.topics[partition.topic], cluster)
        granted = partition.granted
        configuration = Configuration(
            voters=granted.voters,
            observers=tuple(sorted(granted.observers)),
            min_insync=config.min_insync_replicas,
            version=partition.last_version,
        )
        request = GroupAppointment(
            partition.group,
            partition.grant,
            appointment.last_epoch,
            appointment.last_index,
            configuration,
        )
        try:
            await self._replication.fencing.appoint(appointment.leader, request)
        except CallError as error:
            leader = appointment.leader
            _log.info("%s: broker %d was not appointed: %s", partition.name, leader, error)

    def _members_alive(self, partition: Partition) -> list[BrokerId]:
        return [one for one in partition.hosts if self._replication.is_peer_alive(one)]

    async def _submit(self, command: Command) -> None:
        controller = self._services.controller
        answer = await controller.submit(command, timeout_ms=SUBMIT_TIMEOUT_MS)
        if isinstance(answer, Refused):
            _log.info("the controller refuses to %s: %s", words_of(command), answer.message)
