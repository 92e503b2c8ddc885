"""A controller without a log: decides, commits at once, answers."""

import random
from collections.abc import Collection, Sequence

from strandline.controller.commands import (
    Answer,
    Command,
    ConfigChange,
    CreateTopics,
    NewTopic,
    RegisterBroker,
    ResourceChanges,
    TopicResult,
    TopicResults,
)
from strandline.controller.decision import Decision
from strandline.controller.machine import decide
from strandline.controller.records import Record, decode_record, encode_record
from strandline.controller.reports import Report
from strandline.controller.state import ControllerState
from strandline.model.cluster import Address, Labels
from strandline.model.ids import BrokerId

THREE_REGIONS = ("east", "east", "west", "west", "south")


class World:
    """A state, its log, and who is alive."""

    def __init__(self, regions: Sequence[str] = THREE_REGIONS, *, seed: int = 1) -> None:
        self.state = ControllerState()
        self.rng = random.Random(seed)
        self.log: list[bytes] = []
        self.alive: set[BrokerId] = set()
        self.reports: dict[BrokerId, Report] = {}
        self.room: dict[BrokerId, Report] = {}
        self.voters: frozenset[BrokerId] = frozenset()
        self.buckets: dict[str, Labels] = {}
        self.without_tiering: dict[BrokerId, bool] = {}
        for number, region in enumerate(regions, start=1):
            self.run(registration(number, region=region))
            self.alive.add(BrokerId(number))

    def decide(self, command: Command) -> Decision:
        return decide(
            self.state,
            command,
            alive=self.alive,
            rng=self.rng,
            voters=self.voters,
            reports=self.reports,
            room=self.room,
            buckets=self.buckets,
            without_tiering=self.without_tiering,
        )

    def fill(self, **percents: int) -> None:
        """Have brokers tell how full their disks are, in percent: `b1=90`."""
        for name, percent in percents.items():
            self.room[BrokerId(int(name[1:]))] = Report(percent * 1_000, (100 - percent) * 1_000)

    def run(self, command: Command) -> Answer:
        """Decide and commit."""
        decision = self.decide(command)
        self.commit(decision.records)
        return decision.answer

    def commit(self, records: Collection[Record]) -> None:
        for record in records:
            value = encode_record(record)
            self.log.append(value)
            self.state.replay(decode_record(value))

    def replayed(self) -> ControllerState:
        """The state of a broker that has replayed the log."""
        state = ControllerState()
        for value in self.log:
            state.replay(decode_record(value))
        return state

    def create(self, *topics: NewTopic, validate_only: bool = False) -> tuple[TopicResult, ...]:
        answer = self.run(CreateTopics(topics, validate_only))
        assert isinstance(answer, TopicResults)
        return answer.topics

    def create_one(
        self, name: str = "flights", partitions: int = 6, replication_factor: int = 3
    ) -> TopicResult:
        (result,) = self.create(
            NewTopic(name=name, partitions=partitions, replication_factor=replication_factor)
        )
        return result


def brokers(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


def registration(
    number: int,
    *,
    region: str = "east",
    incarnation: str = "first",
    directory: str | None = None,
    cluster_id: str = "",
) -> RegisterBroker:
    return RegisterBroker(
        broker=BrokerId(number),
        incarnation=incarnation,
        directory_id=directory if directory is not None else f"directory-{number}",
        rpc=Address("127.0.0.1", 33_000 + number),
        kafka=Address("127.0.0.1", 9_000 + number),
        labels=Labels(region=region),
        cluster_id=cluster_id,
    )


def changes(type_: int, name: str, *rows: tuple[str, int, str | None]) -> ResourceChanges:
    return ResourceChanges(type_, name, tuple(ConfigChange(*row) for row in rows))
