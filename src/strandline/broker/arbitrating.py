"""Where a group cannot go on by itself, the controller's leader decides who does.

Why:    half of the replicas is left when a data centre is gone, and holds every acknowledged write;
        but no majority lives, and Raft alone waits for somebody who is awake.
How:    every 200 ms on the broker that leads the controller, for the groups of topics whose voters
        may change (`voters.shrink.enable`), or of which a loss was declared:

            no majority of some configuration that may be in force is heard and can vote, N - W + 1
            of each are, and none of them knows a living leader: for a while
                --> a grant is begun (a record)
            a grant that nobody was seated for: its members that are heard are fenced, until enough
                have answered, and their promises to earlier leaders are over; also where the key
                was switched off meanwhile, for who was fenced does not stand for election
                --> the best log is seated, with those as voters (a record)
            a seat: its leader is told, until it reports its voters stable
                --> for too long, though enough are heard: the next grant

        One step follows the other without waiting for the next look, as far as they come.
        Who has lost its disk is heard, and cannot vote until a leader has it rejoin: of two voters
        the other one alone can go on. So every second all who are heard are asked which replicas
        of theirs cannot vote.
        What was answered is forgotten with this broker's lead, and asked again by the next one.
Owns:   since when each group is stuck; the present errand; its timer.
Source: design section 6, 2; decisions 0016 and 0020; `controller.arbiter` for the rules."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from strandline.base.errors import ApiError
from strandline.broker.context import Services
from strandline.broker.errand import Errand
from strandline.broker.ticker import Ticker
from strandline.controller.arbiter import register_of
from strandline.controller.commands import BeginGrant, Command, Refused, SeatLeader
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId, first_epoch
from strandline.network.calls import CallError
from strandline.raft.configuration import Configuration
from strandline.replication.fencing import GROUPS_PER_CALL_MAX, FencedGroup, SeatGroup

LOOK_INTERVAL_MS = 200
UNABLE_INTERVAL_MS = 1_000
"""How often brokers are asked which of their replicas cannot vote."""
STUCK_MS = 1_000
"""So long a group has no quorum that is heard before it is fenced; silence itself takes longer."""
SEAT_MS = 5_000
"""Half as long as the first leader that was seated has until the next grant; each one after it has
twice as long, for a group has `GRANT_MAX` grants for ever."""
SEAT_DOUBLINGS_MAX = 10
SUBMIT_TIMEOUT_MS = 5_000

_log = logging.getLogger("strandline.controller")


@dataclass(slots=True)
class _Stuck:
    """Since when a group is as it is, and which grant it had then; `seat_count`: how many grants
    have begun since it last went on by itself, as far as is known here."""

    grant: int
    since_ms: int
    seat_count: int = 0


class Arbitrating:
    """See the module; one per broker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._clock = services.clock
        self._replication = services.replication
        self._errand = Errand()
        self._ratio = services.replication.settings.patience_ratio
        self._survey = Errand()
        self._surveyed_ms: int | None = None
        # {group: the brokers whose replicas cannot vote, and hear no leader}
        self._unable: dict[GroupId, set[BrokerId]] = {}
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
        self._errand.stop()
        self._survey.stop()

    def _look(self) -> None:
        controller = self._services.controller
        if not controller.is_active:
            self._stuck.clear()
            self._unable.clear()
            return
        now = self._clock.monotonic_ms()
        is_due = self._surveyed_ms is None or now - self._surveyed_ms >= UNABLE_INTERVAL_MS
        if is_due and not self._survey.is_under_way:
            self._surveyed_ms = now
            if self._may_begin():
                self._survey.begin(self._ask_who_cannot_vote)
            else:
                self._unable.clear()  # What was told is not asked again, and would count for ever.
        if not self._errand.is_under_way:
            work = list(self._groups())
            if work:
                self._errand.begin(lambda: self._arbitrate(work))

    # ---- which groups ----------------------------------------------------------------------------

    def _groups(self) -> Iterator[Partition]:
        """Those that something has to be done about now."""
        cluster = self._services.cluster
        is_heard = self._replication.is_peer_alive
        heard = frozenset(one for one in cluster.brokers if is_heard(one))
        present: dict[GroupId, _Stuck] = {}
        now = self._clock.monotonic_ms()
        for topic in cluster.topics.values():
            may_begin = self._services.topic_configs.of(topic, cluster).voters_shrink_enable
            for partition in topic.partitions:
                if not partition.is_fenced and partition.seating is None:
                    if not may_begin and not partition.is_declared:
                        continue
                    able = heard
                    if partition.group in self._unable:
                        able = heard.difference(self._unable[partition.group])
                    if not partition.pending and able.issuperset(partition.voters):
                        continue  # So are nearly all of thousands.
                    register = register_of(partition)
                    if all(one.wins_election(able) for one in register.possible):
                        continue
                    if not register.may_seat(able):
                        continue
                known = self._stuck.get(partition.group)
                if known is None or known.grant != partition.grant:
                    seat_count = 0 if known is None else known.seat_count + 1
                    known = _Stuck(partition.grant, now, seat_count)
                present[partition.group] = known
                if partition.is_fenced or partition.seating or self._has_lasted(known):
                    yield partition
        self._stuck = present

    def _may_begin(self) -> bool:
        """Whether any topic asks for it."""
        cluster, configs = self._services.cluster, self._services.topic_configs
        topics = cluster.topics.values()
        return any(configs.of(topic, cluster).voters_shrink_enable for topic in topics)

    async def _ask_who_cannot_vote(self) -> None:
        async def ask(broker: BrokerId) -> tuple[BrokerId, frozenset[GroupId]]:
            try:
                return broker, await self._replication.fencing.unable(broker)
            except CallError as error:
                _log.debug("broker %d does not say what cannot vote: %s", broker, error)
                return broker, frozenset()

        brokers = self._services.cluster.brokers
        heard = [one for one in sorted(brokers) if self._replication.is_peer_alive(one)]
        unable: dict[GroupId, set[BrokerId]] = {}
        for broker, groups in await asyncio.gather(*map(ask, heard)):
            for group in groups:
                unable.setdefault(group, set()).add(broker)
        self._unable = unable

    def _has_lasted(self, stuck: _Stuck) -> bool:
        return self._clock.monotonic_ms() - stuck.since_ms >= STUCK_MS * self._ratio

    # ---- what is done ----------------------------------------------------------------------------

    async def _arbitrate(self, partitions: list[Partition]) -> None:
        try:
            lost = await self._not_led([one for one in partitions if self._needs_grant(one)])
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
        heard = frozenset(one for one in partition.hosts if self._replication.is_peer_alive(one))
        able = heard.difference(self._unable.get(partition.group, ()))
        stuck = self._stuck[partition.group]
        patience_ms = (SEAT_MS << min(stuck.seat_count, SEAT_DOUBLINGS_MAX)) * self._ratio
        has_lasted = self._clock.monotonic_ms() - stuck.since_ms >= patience_ms
        return has_lasted and register_of(partition).may_seat(able)

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
                return await self._replication.fencing.led(broker, groups)
            except CallError as error:
                _log.info("broker %d does not say who leads: %s", broker, error)
                return frozenset(groups)

        led = frozenset().union(*await asyncio.gather(*map(ask, sorted(asked))))
        now = self._clock.monotonic_ms()
        for group in led & self._stuck.keys():
            self._stuck[group].since_ms = now
        return [one for one in partitions if one.group not in led]

    async def _begin(self, partition: Partition) -> None:
        _log.warning(
            "%s: no majority of its voters is heard; those that are hold all that was "
            "acknowledged: grant %d begins",
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
            if (fenced := _fenced(partition, ends.get(partition.group, {})))
            and register_of(partition).may_seat(fenced)
        ]
        if not ready:
            return
        promised_ms = max(one.promised_ms for _, fenced in ready for one in fenced.values())
        await asyncio.sleep(promised_ms / 1000)
        await asyncio.gather(*(self._choose(*one) for one in ready))

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
    """Those of the answers that count."""
    epoch = first_epoch(partition.grant)
    return {
        broker: one for broker, one in answers.items() if one.epoch == epoch and not one.amnesiac
    }
