"""A cluster in memory that explanations describe."""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import pytest
from tests.cli.command_line import Run
from tests.client.fake_cluster import FakeCluster, FakeTransport, metadata
from tests.controller.controller_world import World as Controller
from tests.controller.controller_world import registration

from strandline.cli.commands import (
    broker_ok_to_stop,
    cluster_balance,
    partition,
    policy,
    topic_explain,
)
from strandline.cli.commands import cluster as cluster_command
from strandline.cli.commands import topic as topic_command
from strandline.client.cluster import Client
from strandline.config.broker_life import DECOMMISSION, MAINTENANCE
from strandline.controller.commands import NewTopic
from strandline.controller.records import ConfigsChanged
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.protocol.messages.describe_balance import BalanceBroker, DescribeBalanceResponse
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from strandline.protocol.messages.describe_leadership import (
    DescribeLeadershipResponse,
    LeaderWait,
)
from strandline.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from strandline.protocol.messages.describe_observers import (
    DescribeObserversResponse,
    ObservedPartition,
)
from strandline.protocol.messages.describe_topology import (
    DescribeTopologyResponse,
    TopologyBroker,
    TopologyLabel,
)
from strandline.protocol.messages.describe_writers import (
    DescribeWritersRequest,
    DescribeWritersResponse,
    WrittenPartition,
)
from strandline.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from strandline.protocol.messages.metadata import MetadataResponse
from strandline.protocol.table import Message

REGIONS = {1: "east", 2: "east", 3: "west", 4: "west", 5: "south"}


TRIPS = {("east", "west"): 30, ("east", "south"): 80, ("south", "west"): 90}


TWO_LOSSES = '{"survive":[{"region":1},{"broker":2}]}'


FROM_TOPIC, FROM_CLUSTER, DEFAULT = 1, 3, 5


@dataclass
class World:
    """2 + 2 + 1 brokers in three regions, and the topic "t"."""

    fake: FakeCluster = field(default_factory=lambda: FakeCluster(5))
    voters: list[list[int]] = field(default_factory=lambda: [[1, 2, 3, 4, 5], [3, 1, 2, 4, 5]])
    policy: tuple[str, int] = (TWO_LOSSES, FROM_TOPIC)
    min_insync: int = 1
    shrinks: str = "false"
    seeds: tuple[int, ...] = (1, 3, 5)
    labels: dict[int, dict[str, str]] = field(
        default_factory=lambda: {one: {"region": name} for one, name in REGIONS.items()}
    )
    measured: dict[tuple[str, str], int] = field(default_factory=lambda: dict(TRIPS))
    behind: set[int] = field(default_factory=set)
    waits: dict[int, list[LeaderWait]] = field(default_factory=dict)
    moving: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)
    writers: list[WrittenPartition] = field(default_factory=list)
    networks: str = ""
    leaving: set[int] = field(default_factory=set)
    maintained: set[int] = field(default_factory=set)
    used_percent: dict[int, int] = field(default_factory=dict)
    disk_full_percent: int = 99
    outage_brokers_min: int = 2
    observers: dict[int, list[int]] = field(default_factory=dict)
    acting: dict[int, list[int]] = field(default_factory=dict)
    created: dict[str, list[tuple[BrokerId, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fake.extra = {
            "CreateTopics": self._create,
            "DescribeBalance": self._balance,
            "DescribeConfigs": self._configs,
            "DescribeLeadership": self._leadership,
            "DescribeLogDirs": self._log_dirs,
            "DescribeObservers": self._observers,
            "DescribeTopology": self._topology,
            "DescribeWriters": self._writers,
            "ListPartitionReassignments": self._moves,
            "Metadata": self._metadata,
        }

    def open_client(self, bootstrap: str, timeout_s: float) -> Client:
        """As `cli.options.open_client`."""
        transport = FakeTransport(self.fake)
        return Client(self.fake.bootstrap, timeout_ms=int(timeout_s * 1000), transport=transport)

    def controller(self) -> Controller:
        """The real one, of such a cluster."""
        made = Controller(())
        for one, labels in self.labels.items():
            made.run(msgspec.structs.replace(registration(one), labels=Labels.of(labels)))
            life = {DECOMMISSION: "true"} if one in self.leaving else {}
            life |= {MAINTENANCE: "-1"} if one in self.maintained else {}
            made.commit([ConfigsChanged("broker", str(one), {**life})])
        values = {"placement.disk.full.percent": str(self.disk_full_percent)}
        values |= {"client.networks": self.networks} if self.networks else {}
        made.commit([ConfigsChanged("cluster", "", {**values})])
        made.alive = {BrokerId(one) for one in self.labels if one not in self.fake.down}
        made.fill(**{f"b{one}": percent for one, percent in self.used_percent.items()})
        return made

    def _create(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        """What is created is there at once, and led by its first replica that is up."""
        assert isinstance(request, CreateTopicsRequest)
        (asked,) = request.topics
        new = NewTopic(
            name=asked.name,
            partitions=asked.num_partitions,
            replication_factor=asked.replication_factor,
            configs=tuple((one.name, one.value) for one in asked.configs),
        )
        controller = self.controller()
        (result,) = controller.create(new)
        if not result.error_code and not request.validate_only:
            made = controller.state.cluster.topics[asked.name].partitions
            self.created[asked.name] = [one.replicas for one in made]
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(
                    name=asked.name, error_code=result.error_code, error_message=result.message
                )
            ]
        )

    def _balance(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        return DescribeBalanceResponse(
            brokers=[
                BalanceBroker(
                    broker_id=one,
                    condition="down" if one in fake.down else "up",
                    is_leaving=one in self.leaving,
                    maintenance_until_ms=-1 if one in self.maintained else 0,
                    disk_used_percent=self.used_percent.get(one, -1),
                )
                for one in self.labels
            ]
        )

    def _leadership(self, _: FakeCluster, broker: int, __: Message) -> Message:
        return DescribeLeadershipResponse(waits=self.waits.get(broker, []))

    def _metadata(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        fake.topics.clear()
        fake.add_topic("t", len(self.voters))
        for name, made in self.created.items():
            fake.add_topic(name, len(made))
        answer = metadata(fake, broker, request)
        assert isinstance(answer, MetadataResponse)
        for topic in answer.topics:
            for one in topic.partitions if topic.name == "t" else ():
                voters = self.voters[one.partition_index]
                watching = self.observers.get(one.partition_index, [])
                adding, _ = self.moving.get(one.partition_index, ([], []))
                vote = self.acting.get(one.partition_index, voters)
                up = [voter for voter in vote if voter not in fake.down]
                one.replica_nodes = adding + voters + watching
                one.isr_nodes = [v for v in up if v not in self.behind]
                one.leader_id = up[0] if len(up) > len(vote) // 2 else -1
            for one in topic.partitions if topic.name in self.created else ():
                made = self.created[topic.name][one.partition_index]
                one.replica_nodes = list(made)
                one.isr_nodes = [broker for broker in made if broker not in fake.down]
                one.leader_id = one.isr_nodes[0]
        return answer

    def _observers(self, *_: object) -> Message:
        told = {one: ObservedPartition("t", one, some) for one, some in self.observers.items()}
        for one, some in self.acting.items():
            told.setdefault(one, ObservedPartition("t", one)).acting = some
        return DescribeObserversResponse(partitions=list(told.values()))

    def _configs(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DescribeConfigsRequest)
        (asked,) = request.resources
        rows = {"min.insync.replicas": (str(self.min_insync), DEFAULT)}
        if asked.resource_name.isdigit():
            seeds = ",".join(f"{one}@host-{one}:1" for one in self.seeds)
            rows = {"cluster.seeds": (seeds, DEFAULT)}
        elif asked.resource_name:
            rows |= {"voters.shrink.enable": (self.shrinks, DEFAULT)}
            rows |= {"placement.policy": self.policy}
            rows |= {"confluent.placement.constraints": ("", DEFAULT)}
        else:
            rows |= {"default.replication.factor": ("3", DEFAULT)}
            rows |= {"placement.disk.full.percent": (str(self.disk_full_percent), DEFAULT)}
            rows |= {"balancer.disk.high.percent": ("85", DEFAULT)}
            rows |= {"outage.brokers.min": (str(self.outage_brokers_min), DEFAULT)}
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                    configs=[
                        DescribeConfigsResourceResult(name=name, value=text, config_source=source)
                        for name, (text, source) in rows.items()
                    ],
                )
            ]
        )

    def _topology(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        def way(other: int) -> int:
            a, b = sorted(self.labels[one].get("region", "") for one in (broker, other))
            return -1 if other == broker else self.measured.get((a, b), -1 if a != b else 1)

        return DescribeTopologyResponse(
            broker_id=broker,
            brokers=[
                TopologyBroker(
                    broker_id=one,
                    is_alive=one not in fake.down,
                    round_trip_ms=way(one),
                    labels=[TopologyLabel(name, value) for name, value in labels.items()],
                )
                for one, labels in self.labels.items()
            ],
        )

    def _writers(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        """Every broker tells of all, whoever leads them."""
        assert isinstance(request, DescribeWritersRequest) and request.topic == "t"
        return DescribeWritersResponse(partitions=self.writers)

    def _moves(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        moves = [
            OngoingPartitionReassignment(index, adding + self.voters[index], adding, removing)
            for index, (adding, removing) in self.moving.items()
        ]
        return ListPartitionReassignmentsResponse(
            topics=[OngoingTopicReassignment(name="t", partitions=moves)] if moves else []
        )

    def _log_dirs(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        logs = [DescribeLogDirsTopic("t", [DescribeLogDirsPartition(0, 100)])]
        result = DescribeLogDirsResult(
            log_dir="/data", topics=logs, total_bytes=1_000, usable_bytes=250
        )
        return DescribeLogDirsResponse(results=[result])


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A cluster in memory that these commands find."""
    made = World()
    for module in (
        topic_command, topic_explain, cluster_command, policy, partition, broker_ok_to_stop,
        cluster_balance,
    ):  # fmt: skip
        monkeypatch.setattr(module, "open_client", made.open_client)
    return made


Lines = Callable[..., list[str]]


@pytest.fixture
def told(run: Run) -> Lines:
    """The lines that a command prints, which goes well."""

    def tell(*arguments: str) -> list[str]:
        code, out, err = run(*arguments)
        assert (code, err) == (0, "")
        return out.splitlines()

    return tell


def cells(lines: list[str], head: str) -> list[list[str]]:
    """The rows of the table that begins with this head; cells are two spaces apart."""
    start = next(at for at, line in enumerate(lines) if line.lstrip().startswith(head))
    rows = []
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        rows.append([cell.strip() for cell in line.split("  ") if cell.strip()])
    return rows
