"""Where a group cannot go on by itself, the controller's leader decides who does.

Why:    half of the replicas is left when a data centre is gone, and holds every acknowledged write;
        but no majority lives, and Raft alone waits for somebody who is awake.
How:    every 200 ms on the broker that leads the controller, for the groups of topics whose voters
        may change (`voters.shrink.enable`), or of which a loss was declared:

            no majority of some configuration that may be in force is heard, can vote, and hears
            each other, N - W + 1 of each do, and none of them knows a living leader, but one that
            commits nothing because of others: for a while
                --> a grant is begun (a record)
            a grant that nobody was seated for: its members that are heard are fenced, until enough
                have answered that hear each other, and their promises to earlier leaders are over;
                also where the key was switched off meanwhile, for who was fenced does not stand for
                election
                --> the best log is seated, with those as voters (a record)
            a seat: its leader is told, until it reports its voters stable
                --> for too long, though enough are heard: the next grant

        One step follows the other without waiting for the next look, as far as they come.
        Who has lost its disk is heard, and cannot vote until a leader has it rejoin: of two voters
        the other one alone can go on; and so where one of two takes nothing that its leader sends,
        as its disk is full, or hangs. So every second all who are heard are asked which replicas of
        theirs cannot vote, what they lead in vain, and whom they do not hear; the last they also
        tell with the answers that the grant and the seat rest on.
        Who is heard and answers nothing for long (what goes there is dropped, what comes from there
        is not) counts as not heard: else it would be waited for for ever. Who answers tells of a
        leader as well, for any that may be seated include one that a leader needs.
        What was answered is forgotten with this broker's lead, and asked again by the next one.
Owns:   since when each group is stuck; the present errand; its timer.
Source: design section 6, 2; decisions 0016 and 0020; `controller.arbiter` for the rules."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from strandline.base.errors import ApiError
from strandline.broker.context import Services
from strandline.broker.operations.single_flight import SingleFlight
from strandline.broker.operations.ticker import Ticker
from strandline.controller.arbitration.sides import Need, Reach, cuts_of
from strandline.controller.commands import BeginGrant, Command, Refused, SeatLeader
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId, first_epoch
from strandline.network.calls import CallError
from strandline.placement.policy.document import Promotion
from strandline.raft.group.configuration import Configuration
from strandline.replication.liveness.fencing import (
    GROUPS_PER_CALL_MAX,
    FencedGroup,
    SeatGroup,
    UnableGroups,
)

LOOK_INTERVAL_MS = 200
UNABLE_INTERVAL_MS = 1_000
"""How often brokers are asked which of their replicas cannot vote, and whom they do not hear."""
TOLD_VALID_MS = 5_000
"""For how long it counts whom a broker did not hear, where it answers no more."""
MUTE_MS = 10_000
"""After so long without an answer a broker that is heard counts as one that is not."""
STUCK_MS = 1_000
"""So long a group has no quorum that is heard before it is fenced; silence itself takes longer."""
SEAT_MS = 5_000
"""Half as long as the first leader that was seated has until the next grant; each one after it has
twice as long, for a group has `GRANT_MAX` grants for ever."""
SEAT_DOUBLINGS_MAX = 10
SUBMIT_TIMEOUT_MS = 5_000
STANDING_IN: tuple[Promotion, ...] = ("under-min-isr", "under-replicated")
"""The policies by which observers vote where no region is lost."""

_log = logging.getLogger("strandline.controller")


@dataclass(slots=True)
class _Stuck:
    """Since when a group is as it is, and which grant it had then; `seat_count`: how many grants
    have begun since it last went on by itself, as far as is known here."""

    grant: int
    since_ms: int
    seat_count: int = 0


@dataclass(frozen=True, slots=True)
class _Stalled:
    """Whom the leader of a group waited for in vain, in a grant: it counts until a leader of a
    later one has reported, and tells for itself."""

    grant: int
    brokers: tuple[BrokerId, ...]


class Arbitrating:
    """See the module; one per broker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._clock = services.clock
        self._replication = services.replication
        self._single_flight = SingleFlight()
        self._ratio = services.replication.settings.patience_ratio
        self._survey = SingleFlight()
        self._surveyed_ms: int | None = None
        # {group: the brokers whose replicas cannot vote, and hear no leader}
        self._unable: dict[GroupId, set[BrokerId]] = {}
        self._stalled: dict[GroupId, _Stalled] = {}
        # {broker: (when it told, whom it did not hear)}
        self._told: dict[BrokerId, tuple[int, tuple[BrokerId, ...]]] = {}
        # {broker that is heard, and answers nothing: since when}
        self._mute_ms: dict[BrokerId, int] = {}
        self._reach = Reach(frozenset())
        self._stuck: dict[GroupId, _Stuck] = {}
        self._ticker = Ticker(
            services.clock,
            self._look,
            interval_ms=LOOK_INTERVAL_MS,
            log=_log,
            failure="cannot decide who leads groups without a quorum",
        )

    def start(self) -> None:
        """Begin to look."""
        self._ticker.start()

    def stop(self) -> None:
        """End it."""
        self._ticker.stop()
        self._single_flight.stop()
        self._survey.stop()

    def _look(self) -> None:
        controller = self._services.controller
        if not controller.is_active:
            self._stuck.clear()
            self._unable.clear()
            self._stalled.clear()
            self._told.clear()
            self._mute_ms.clear()
            return
        now = self._clock.monotonic_ms()
        is_due = self._surveyed_ms is None or now - self._surveyed_ms >= UNABLE_INTERVAL_MS
        if is_due and not self._survey.is_under_way:
            self._surveyed_ms = now
            if self._may_begin() or self._stuck:
                self._survey.begin(self._ask_all)
            else:
                # What was told is not asked again, and would count for ever.
                self._unable.clear()
                self._stalled.clear()
                self._mute_ms.clear()
        if not self._single_flight.is_under_way:
            work = list(self._groups())
            if work:
                self._single_flight.begin(lambda: self._arbitrate(work))

    # ---- which groups ----------------------------------------------------------------------------

    def _groups(self) -> Iterator[Partition]:
        """Those that something has to be done about now."""
        cluster = self._services.cluster
        reach = self._look_around()
        heard = reach.heard
        self._forget_stalled()
        present: dict[GroupId, _Stuck] = {}
        now = self._clock.monotonic_ms()
        for topic in cluster.topics.values():
            may_begin = self._services.topic_configs.of(topic, cluster).voters_shrink_enable
            for partition in topic.partitions:
                if not partition.is_fenced and partition.seating is None:
                    if not may_begin and not partition.is_declared:
                        continue
                    able = self._able(partition, heard)
                    voters = partition.voters
                    if not partition.pending and able.issuperset(voters) and reach.is_whole(voters):
                        continue  # So are nearly all of thousands.
                    if not reach.stands_still(partition, able):
                        continue
                known = self._stuck.get(partition.group)
                if known is None or known.grant != partition.grant:
                    seat_count = 0 if known is None else known.seat_count + 1
                    known = _Stuck(partition.grant, now, seat_count)
                present[partition.group] = known
                if partition.is_fenced or partition.seating or self._has_lasted(known, STUCK_MS):
                    yield partition
        self._stuck = present

    def _forget_stalled(self) -> None:
        """Of groups that another leader has come to lead since: else these would be arbitrated
        again, by what was so before."""
        groups = self._services.cluster.groups
        for group, one in list(self._stalled.items()):
            partition = groups.get(group)
            if partition is not None and (partition.is_fenced or partition.seating is not None):
                continue
            if partition is None or partition.grant > one.grant:
                del self._stalled[group]

    def _able(self, partition: Partition, heard: frozenset[BrokerId]) -> frozenset[BrokerId]:
        """Those that are heard, but for those that cannot vote, or take nothing."""
        group = partition.group
        if group in self._unable:
            heard = heard.difference(self._unable[group])
        if group in self._stalled:
            heard = heard.difference(self._stalled[group].brokers)
        return heard

    def _may_begin(self) -> bool:
        """Whether any topic asks for it."""
        cluster, configs = self._services.cluster, self._services.topic_configs
        topics = cluster.topics.values()
        return any(configs.of(topic, cluster).voters_shrink_enable for topic in topics)

    def _look_around(self) -> Reach:
        """Who is heard now, and who of them is cut off from whom; the same object as long as that
        is as it was."""
        is_heard = self._replication.is_peer_alive
        heard = frozenset(
            one
            for one in self._services.cluster.brokers
            if is_heard(one) and not self._is_mute(one)
        )
        since_ms = self._clock.monotonic_ms() - TOLD_VALID_MS
        silent = {one: some for one, (at_ms, some) in self._told.items() if at_ms > since_ms}
        reach = Reach(heard, cuts_of(silent, heard))
        if reach != self._reach:
            self._reach = reach
        return self._reach

    def _note_silent(self, broker: BrokerId, silent: tuple[BrokerId, ...]) -> None:
        self._told[broker] = self._clock.monotonic_ms(), silent
        self._mute_ms.pop(broker, None)

    def _is_mute(self, broker: BrokerId) -> bool:
        """Whether it has been asked for long, and has answered nothing."""
        now = self._clock.monotonic_ms()
        return now - self._mute_ms.get(broker, now) >= MUTE_MS * self._ratio

    async def _ask_all(self) -> None:
        """Which replicas cannot vote, and who hears whom."""

        async def ask(broker: BrokerId) -> tuple[BrokerId, UnableGroups]:
            try:
                told = await self._replication.fencing.unable(broker)
            except CallError as error:
                _log.debug("broker %d does not say what cannot vote: %s", broker, error)
                self._mute_ms.setdefault(broker, self._clock.monotonic_ms())
                return broker, UnableGroups(())
            self._note_silent(broker, told.silent)
            return broker, told

        brokers = self._services.cluster.brokers
        heard = [one for one in sorted(brokers) if self._replication.is_peer_alive(one)]
        for broker in self._mute_ms.keys() - set(heard):
            del self._mute_ms[broker]
        unable: dict[GroupId, set[BrokerId]] = {}
        stalled: dict[GroupId, _Stalled] = {}
        groups = self._services.cluster.groups
        for broker, told in await asyncio.gather(*map(ask, heard)):
            for group in told.groups:
                unable.setdefault(group, set()).add(broker)
            for group, some in told.stalled:
                known = self._replication.leaders.get(group)
                is_leader = known is not None and known.leader == broker  # No earlier one.
                if is_leader and group in groups:
                    stalled[group] = _Stalled(groups[group].grant, some)
        self._unable = unable if self._may_begin() else {}
        for group, one in self._stalled.items():
            partition = groups.get(group)
            if partition is not None and (partition.is_fenced or partition.seating is not None):
                stalled.setdefault(group, one)  # Nobody leads who could tell.
        self._stalled = stalled

    def _has_lasted(self, stuck: _Stuck, ms: int) -> bool:
        return self._clock.monotonic_ms() - stuck.since_ms >= ms * self._ratio

    # ---- what is done ----------------------------------------------------------------------------

    async def _arbitrate(self, partitions: list[Partition]) -> None:
        try:
            lost = await self._not_led([one for one in partitions if self._needs_grant(one)])
            lost = [one for one in lost if self._can_be_helped(one)]  # Whom they hear is told, too.
            await asyncio.gather(*(self._begin(one) for one in lost))
            await self._fence([one for one in self._present(partitions) if one.is_fenced])
            seated = [one for one in self._present(partitions) if one.seating]
            await asyncio.gather(*map(self._seat, seated))
        except ApiError as error:
            _log.info("arbitration waits: %s", error)

    def _present(self, partitions: list[Partition]) -> list[Partition]:
        """The same as they are now: a record may have come since, and nobody serves meanwhile."""
        groups = self._services.cluster.groups
        return [groups[one.group] for one in partitions if one.group in groups]

    def _needs_grant(self, partition: Partition) -> bool:
        if partition.is_fenced:
            return False
        if partition.seating is None:
            return True
        stuck = self._stuck[partition.group]
        patience_ms = SEAT_MS << min(stuck.seat_count, SEAT_DOUBLINGS_MAX)
        return self._has_lasted(stuck, patience_ms) and self._can_be_helped(partition)

    def _can_be_helped(self, partition: Partition) -> bool:
        """Whether a grant may bring forth a leader, where elections or the last seat do not."""
        reach = self._look_around()
        if partition.seating is None:
            return reach.stands_still(partition, self._able(partition, reach.heard))
        # Whom the last leader waited for may be all that is left.
        return reach.may_seat(
            partition, reach.heard.difference(self._unable.get(partition.group, ()))
        )

    async def _not_led(self, partitions: list[Partition]) -> list[Partition]:
        """Those of which nobody who is heard knows a living leader: what is cut off from here may
        serve, or have been granted voters that it goes on without."""
        asked: dict[BrokerId, list[GroupId]] = {}
        for partition in partitions:
            for broker in partition.hosts:
                if self._replication.is_peer_alive(broker):
                    asked.setdefault(broker, []).append(partition.group)

        async def ask(broker: BrokerId) -> frozenset[GroupId]:
            groups = asked[broker]
            try:
                told = await self._replication.fencing.led(broker, groups)
            except CallError as error:
                _log.info("broker %d does not say who leads: %s", broker, error)
                return frozenset(() if self._is_mute(broker) else groups)
            self._note_silent(broker, told.silent)
            return frozenset(told.groups)

        led = frozenset().union(*await asyncio.gather(*map(ask, sorted(asked))))
        led -= self._stalled.keys()
        now = self._clock.monotonic_ms()
        for group in led & self._stuck.keys():
            self._stuck[group].since_ms = now
        return [one for one in partitions if one.group not in led]

    async def _begin(self, partition: Partition) -> None:
        _log.warning(
            "%s: no majority of its voters is heard, hears each other and keeps up; some that do "
            "hold all that was acknowledged: grant %d begins",
            partition.name,
            partition.grant + 1,
        )
        await self._submit(BeginGrant(partition.group, partition.grant))

    async def _fence(self, partitions: list[Partition]) -> None:
        """Fence them at everybody who is heard, and seat somebody where enough have answered."""
        asked: dict[BrokerId, list[tuple[GroupId, int]]] = {}
        for partition in partitions:
            for broker in partition.hosts:
                if self._replication.is_peer_alive(broker):
                    asked.setdefault(broker, []).append((partition.group, partition.grant))
        ends: dict[GroupId, dict[BrokerId, FencedGroup]] = {}
        for broker, answers in await self._ask(asked):
            for one in answers:
                ends.setdefault(one.group, {})[broker] = one
        ready = [
            (partition, fenced)
            for partition in partitions
            if (fenced := self._side(partition, ends.get(partition.group, {})))
        ]
        if not ready:
            return
        promised_ms = max(one.promised_ms for _, fenced in ready for one in fenced.values())
        await asyncio.sleep(promised_ms / 1000)
        await asyncio.gather(*(self._choose(*one) for one in ready))

    def _side(
        self, partition: Partition, answers: dict[BrokerId, FencedGroup]
    ) -> dict[BrokerId, FencedGroup]:
        """Those of the answers that somebody is seated by: they count, and these members hear each
        other. None where that is nobody."""
        cluster = self._services.cluster
        topic = cluster.topics[partition.topic]
        fenced = _fenced(partition, answers)
        cuts = cuts_of({broker: one.silent for broker, one in fenced.items()}, fenced)
        least = self._services.topic_configs.of(topic, cluster).min_insync_replicas
        need = Need(
            min(least, len(partition.replicas)),
            promotes=self._services.leader_ranks.of(topic, cluster).promotion in STANDING_IN,
        )
        able = self._able(partition, frozenset(fenced))
        side = Reach(able, cuts).side(partition, able, need)
        stuck = self._stuck.get(partition.group)
        if not side and stuck is not None and self._has_lasted(stuck, SEAT_MS):
            # Who took nothing from a leader that is gone has answered, durably.
            side = Reach(frozenset(fenced), cuts).side(partition, fenced, need)
        return {broker: one for broker, one in fenced.items() if broker in side}

    async def _ask(
        self, asked: dict[BrokerId, list[tuple[GroupId, int]]]
    ) -> list[tuple[BrokerId, tuple[FencedGroup, ...]]]:
        async def ask(broker: BrokerId) -> tuple[BrokerId, tuple[FencedGroup, ...]]:
            found: list[FencedGroup] = []
            groups = asked[broker]
            try:
                for at in range(0, len(groups), GROUPS_PER_CALL_MAX):
                    some = groups[at : at + GROUPS_PER_CALL_MAX]
                    found += await self._replication.fencing.fence(broker, some)
            except CallError as error:
                _log.info("broker %d was not fenced: %s", broker, error)
            return broker, tuple(found)

        return list(await asyncio.gather(*map(ask, sorted(asked))))

    async def _choose(self, partition: Partition, fenced: dict[BrokerId, FencedGroup]) -> None:
        answers = sorted(fenced.items())
        command = SeatLeader(
            group=partition.group,
            grant=partition.grant,
            ends=tuple((broker, one.last_epoch, one.last_index) for broker, one in answers),
            configured=tuple(one.configured for _, one in answers),
        )
        await self._submit(command)

    async def _seat(self, partition: Partition) -> None:
        """Tell who was chosen that it leads: it may have heard it, and is told again."""
        seating = partition.seating
        assert seating is not None
        cluster = self._services.cluster
        config = self._services.topic_configs.of(cluster.topics[partition.topic], cluster)
        granted = partition.granted
        configuration = Configuration(
            voters=granted.voters,
            observers=tuple(sorted(granted.observers)),
            min_insync=config.min_insync_replicas,
            version=partition.last_version,
        )
        seat = SeatGroup(
            partition.group,
            partition.grant,
            seating.last_epoch,
            seating.last_index,
            configuration,
        )
        try:
            await self._replication.fencing.seat(seating.leader, seat)
        except CallError as error:
            _log.info("%s: broker %d was not seated: %s", partition.name, seating.leader, error)

    async def _submit(self, command: Command) -> None:
        controller = self._services.controller
        answer = await controller.submit(command, timeout_ms=SUBMIT_TIMEOUT_MS)
        if isinstance(answer, Refused):
            _log.info("the controller refuses %s: %s", command, answer.message)


def _fenced(
    partition: Partition, answers: dict[BrokerId, FencedGroup]
) -> dict[BrokerId, FencedGroup]:
    """Those of the answers that count: of this grant, from a log that proves something."""
    epoch = first_epoch(partition.grant)
    return {
        broker: one for broker, one in answers.items() if one.epoch == epoch and not one.lost_state
    }
