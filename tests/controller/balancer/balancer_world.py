"""A controller without a log, its balancer, and group leaders that do what is asked at once."""

from collections.abc import Sequence
from dataclasses import replace

from tests.controller.controller_world import World, changes, registration

from strandline.config.cluster import ClusterConfig
from strandline.controller.balancer.disks import Disks
from strandline.controller.balancer.fullness import Fullness
from strandline.controller.balancer.health import UNSEEN_MS_MAX, Condition, Health
from strandline.controller.balancer.plans import Plans
from strandline.controller.balancer.reasons import Wait
from strandline.controller.balancer.round import Move, Round, Settings
from strandline.controller.commands import (
    AlterConfigs,
    BalanceReplicas,
    NewTopic,
    RegisterBroker,
    ReportVoters,
    RequestVoters,
    ResourceResults,
)
from strandline.controller.decision import leaving_of, maintained_of
from strandline.model.cluster import Labels, Partition
from strandline.model.ids import BrokerId, GroupId

SET, DELETE = 0, 1
TOPIC, CLUSTER = 2, 4
LOST_AFTER_MS = 900_000


def ids(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


class BalancerWorld(World):
    """Time goes by in `wait`; nothing moves before a round is run."""

    def __init__(self, regions: Sequence[str]) -> None:
        super().__init__(regions)
        self.now_ms = 0
        self.health = Health()
        self.fullness = Fullness()
        self.disks = Disks()
        self.reasons: dict[GroupId, str] = {}
        self.stopped: set[GroupId] = set()
        self.by_hand: set[GroupId] = set()
        self.condition = Condition()
        self.silent_ms: dict[BrokerId, int] = {}
        self.waiting_for: dict[BrokerId, Wait] = {}
        self.wait(60_000)

    def topic(
        self,
        name: str = "flights",
        *,
        policy: str = "",
        partitions: int = 1,
        replicas: Sequence[int] = (),
        configs: Sequence[tuple[str, str]] = (),
    ) -> None:
        """A topic by its policy, or with all its partitions on these brokers."""
        rows = tuple((index, ids(*replicas)) for index in range(partitions)) if replicas else ()
        (result,) = self.create(
            NewTopic(
                name=name,
                partitions=-1 if rows else partitions,
                assignments=rows,
                configs=(*((("placement.policy", policy),) if policy else ()), *configs),
            )
        )
        assert result.error_code == 0, result.message

    def alter(
        self, name: str, key: str, value: str | None, *, scope: int = TOPIC
    ) -> tuple[int, str]:
        """(error code, message) of one change."""
        row = (key, DELETE if value is None else SET, value)
        answer = self.run(AlterConfigs((changes(scope, name, row),)))
        assert isinstance(answer, ResourceResults)
        (result,) = answer.resources
        return result.error_code, result.message or ""

    def add_broker(self, number: int, region: str) -> None:
        self.run(registration(number, region=region))
        self.alive.add(BrokerId(number))

    def relabel(self, number: int, region: str, **others: str) -> None:
        """The broker starts again, with other labels."""
        known = registration(number)
        self.run(
            RegisterBroker(
                broker=known.broker,
                incarnation=f"at {self.now_ms}",
                directory_id=known.directory_id,
                rpc=known.rpc,
                kafka=known.kafka,
                labels=Labels(region=region, **others),
            )
        )

    def wait(self, duration_ms: int) -> None:
        """Time goes by; the balancer looks at both ends of it, and often enough in between."""
        self._look()
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            self.now_ms = min(end_ms, self.now_ms + UNSEEN_MS_MAX)
            self._look()

    def down(self, *numbers: int) -> None:
        self.alive -= set(ids(*numbers))
        self._look()

    def up(self, *numbers: int) -> None:
        self.alive |= set(ids(*numbers))
        self._look()

    def lose(self, *numbers: int) -> None:
        self.down(*numbers)
        self.wait(LOST_AFTER_MS)

    def change_controllers(self) -> None:
        """Another broker is the controller: it knows the log, and who has been silent for long."""
        self.silent_ms = {
            one: self.now_ms - since_ms for one, since_ms in self.condition.down_since_ms.items()
        }
        self.health, self.reasons = Health(), {}
        self._look()

    def _look(self) -> None:
        known = self.health.step(
            self.now_ms,
            brokers=self.state.cluster.brokers,
            alive=self.alive,
            lost_after_ms=LOST_AFTER_MS,
            spared=maintained_of(self.state.cluster),
            silent_ms=self.silent_ms,
        )
        self.fullness.step(
            self.now_ms,
            self.reports,
            high_percent=self._config.balancer_disk_high_percent,
            low_percent=self._config.disk_low_percent,
        )
        self.condition = replace(
            known,
            full=self.fullness.full,
            overfull=self.fullness.overfull,
            lost=known.lost - self.waiting_for.keys(),
            held=self.waiting_for,
        )
        self.disks.hear(self.reports, asked_ms=self.now_ms)

    @property
    def _config(self) -> ClusterConfig:
        return ClusterConfig.from_values(self.state.cluster.cluster_configs)

    def look(self) -> Round:
        """A round, whose moves are not asked for."""
        cluster = self.state.cluster
        plans = Plans(cluster.brokers.values(), self.condition.lost, leaving_of(cluster))
        one = Round(
            cluster,
            self.condition,
            plans,
            settings=replace(Settings.of(cluster.cluster_configs), lost_after_ms=LOST_AFTER_MS),
            reasons=self.reasons,
            stopped=self.stopped,
            by_hand=self.by_hand,
            room=self.disks.room(self.now_ms, low_percent=self._config.disk_low_percent),
            used_percent=self.fullness.used_percent,
        )
        for _ in one.steps():
            pass
        return one

    def round(self) -> list[Move]:
        """A round; its moves are asked for."""
        looked = self.look()
        moves = looked.moves
        self.run(BalanceReplicas(tuple(move.command for move in moves)))
        self.reasons |= looked.found_reasons
        self.reasons |= {move.command.group: move.code for move in moves}
        return moves

    def grant(self) -> None:
        """The leaders of all groups that move are granted what is wanted."""
        for group in list(self.state.cluster.moving):
            one = self.state.cluster.groups[group]
            if not one.pending:
                self.run(RequestVoters(group, one.version, one.target, one.target_observers))

    def finish(self, group: GroupId) -> None:
        """What moves of this group is done."""
        one = self.state.cluster.groups[group]
        if not one.pending:
            self.run(RequestVoters(group, one.version, one.target, one.target_observers))
        one = self.state.cluster.groups[group]
        self.run(ReportVoters(group, one.version + 1, one.pending))

    def vote(self, *voters: int, name: str = "flights") -> None:
        """Of each of its partitions only these vote now, while others are lost."""
        for one in self.state.cluster.topics[name].partitions:
            rest = tuple(broker for broker in one.roles.all if broker not in voters)
            self.run(RequestVoters(one.group, one.version, ids(*voters), rest))
            self.run(ReportVoters(one.group, one.version + 1, ids(*voters)))

    def settle(self) -> None:
        """What moves is done."""
        for group in list(self.state.cluster.moving):
            self.finish(group)
            self.disks.note_change(group, self.now_ms)
        self.wait(1_000)

    def rest(self, rounds: int = 60) -> int:
        """Rounds until nothing moves any more; how many moves that took."""
        count = 0
        self.settle()
        for _ in range(rounds):
            moves = self.round()
            count += len(moves)
            self.settle()
            if not moves:
                return count
        raise AssertionError("it moves and moves")

    def waits(self) -> dict[str, tuple[str, int]]:
        """{code: (words, partitions)} of what does not move now."""
        return {code: (text, one.count) for (code, text), one in self.look().waits.found.items()}

    def partition(self, name: str = "flights", index: int = 0) -> Partition:
        return self.state.cluster.topics[name].partitions[index]

    def replicas(self, name: str = "flights") -> list[tuple[int, ...]]:
        partitions = self.state.cluster.topics[name].partitions
        return [tuple(sorted(one.replicas)) for one in partitions]

    def observers(self, name: str = "flights") -> list[tuple[int, ...]]:
        partitions = self.state.cluster.topics[name].partitions
        return [tuple(sorted(one.observers)) for one in partitions]

    def regions(self, name: str = "flights", *, watch: bool = False) -> set[tuple[str, ...]]:
        """Of the voters of each partition; or of the observers, who `watch`."""
        brokers = self.state.cluster.brokers
        return {
            tuple(sorted(brokers[BrokerId(one)].labels.region for one in each))
            for each in (self.observers(name) if watch else self.replicas(name))
        }
