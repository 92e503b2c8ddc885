"""A whole cluster of brokers in virtual time: real Broker, Replication and logs on simulated hosts.

Brokers 1 to 3 are the controller's voters, broker 4 is none."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from tests.broker.broker_world import Pending, Sink, frame_of

from strandline.broker.broker import Broker
from strandline.config.access_section import AccessSection
from strandline.config.broker import BrokerConfig, StorageSection
from strandline.config.tiered_section import TieredSection
from strandline.controller.commands import Answer, Command, CreateTopics, NewTopic, TopicResults
from strandline.model.cluster import Labels, StoredLabels
from strandline.model.ids import CONTROLLER_GROUP, BrokerId
from strandline.protocol.table import Message
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.simulation.buckets.backend import SimBackend
from strandline.simulation.buckets.bucket import SimBucket
from strandline.simulation.network.link import Link
from strandline.simulation.network.network import SimFabric
from strandline.simulation.world.broker_member import config_of
from strandline.simulation.world.host import Seams, SimHost
from strandline.simulation.world.scheduler import US_PER_MS, Scheduler
from strandline.simulation.world.trace import Trace
from strandline.tiered.objects.bucket_store import BucketStore
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.objects.limits import StoreLimits
from strandline.tiered.objects.store import ObjectStore

VOTERS = (1, 2, 3)
BROKERS = (1, 2, 3, 4)
SEEDS = tuple(f"{one}@host-{one}:1" for one in VOTERS)
DATA_DIRECTORY = "/data"
CLEAN_INTERVAL_MS = 1_000
SCRUB_INTERVAL_MS = 1_000
LIMIT_MS = 60_000
T = TypeVar("T")
R = TypeVar("R", bound=Message)


class ClusterWorld:
    """See the module. Brokers are named by their ids. With `scrub_rate`, in bytes a second, they
    look for damage all the time. `reserve_bytes`: what their disks keep for the controller's log.
    `regions`: {broker: its region}, where they have some. `clean_interval_ms`: how often all logs
    are maintained. `tiered`: their buckets, which are simulated ones. `voters`: the controller's.
    `access`: what clients may do. `machines`: {broker: its label host}, where they have some."""

    def __init__(
        self,
        brokers: Iterable[int] = BROKERS,
        *,
        scrub_rate: int = 0,
        reserve_bytes: int = 0,
        regions: Mapping[int, str] | None = None,
        clean_interval_ms: int = CLEAN_INTERVAL_MS,
        tiered: TieredSection | None = None,
        voters: tuple[int, ...] = VOTERS,
        access: AccessSection | None = None,
        machines: Mapping[int, str] | None = None,
    ) -> None:
        self.voters = voters
        self.access = access or AccessSection()
        self.scrub_rate = scrub_rate
        self.clean_interval_ms = clean_interval_ms
        self.reserve_bytes = reserve_bytes
        self.regions = dict(regions or {})
        self.machines = dict(machines or {})
        self.tiered = tiered or TieredSection()
        self.kept_labels: dict[int, StoredLabels] = {}
        self.scheduler = Scheduler()
        self.fabric = SimFabric(
            self.scheduler,
            random.Random(1),
            lambda _from, _to: Link(latency_us=500, jitter_us=100, bytes_per_ms=1_000_000),
        )
        self.buckets = {
            name: SimBucket(name, self.scheduler, random.Random(at))
            for at, name in enumerate(self.tiered.labels_of_buckets)
        }
        """{bucket: what it holds}; they outlive all brokers."""
        self.others: dict[str, SimBucket] = {}
        """{path: the bucket of another cluster}"""
        self.cluster_ids: dict[int, str] = {}
        self.failures: dict[int, str] = {}
        self.restarted: set[int] = set()
        """Brokers that join only if the cluster still knows them."""
        ids = tuple(brokers)
        self.directory_ids = {one: f"directory-{one}" for one in ids}
        self.starts: dict[int, asyncio.Task[None]] = {}
        self.hosts = {one: self._make_host(one) for one in ids}
        for host in self.hosts.values():
            host.start()

    def _make_host(self, broker: int) -> SimHost[Broker]:
        return SimHost(
            BrokerId(broker),
            fabric=self.fabric,
            trace=Trace(self.scheduler),
            rng=random.Random(broker),
            drift_ppm=0,
            boot=lambda seams: self._boot(broker, seams),
        )

    def _boot(self, broker: int, seams: Seams) -> Broker:
        replication = Replication(
            self_id=BrokerId(broker),
            clock=seams.clock,
            rng=seams.rng,
            disk=seams.disk,
            network=seams.network,
            settings=ReplicationSettings(reserve_bytes=self.reserve_bytes),
            data_directory=DATA_DIRECTORY,
        )
        seams.disk.make_directories(DATA_DIRECTORY)
        replication.start()
        storage = StorageSection(
            retention_check_interval_ms=self.clean_interval_ms,
            preallocate=False,
            scrub_rate=self.scrub_rate,
            scrub_interval_ms=SCRUB_INTERVAL_MS,
        )
        made = Broker(
            config=self.adjust(
                replace(
                    config_of(BrokerId(broker), self.voters, storage),
                    tiered=self.tiered,
                    access=self.access,
                )
            ),
            clock=seams.clock,
            rng=seams.rng,
            disk=seams.disk,
            replication=replication,
            directory_id=self.directory_ids[broker],
            labels=Labels(region=self.regions.get(broker, ""), host=self.machines.get(broker, "")),
            kept_labels=self.kept_labels.get(broker),
            on_labelled=lambda kept: self.kept_labels.__setitem__(broker, kept),
            cluster_id=self.cluster_ids.get(broker, ""),
            on_joined=lambda cluster_id: self.cluster_ids.__setitem__(broker, cluster_id),
            on_failed=lambda reason: self.failures.__setitem__(broker, reason),
            buckets=self._stores(seams),
            must_be_known=broker in self.restarted,
        )
        self.starts[broker] = asyncio.get_running_loop().create_task(made.start())
        return made

    def adjust(self, config: BrokerConfig) -> BrokerConfig:
        """What else a broker's configuration has; tests override it."""
        return config

    def other_bucket(self, path: str) -> SimBucket:
        """The bucket of another cluster, which brokers here may open by its URL."""
        if path not in self.others:
            self.others[path] = SimBucket(path, self.scheduler, random.Random(path))
        return self.others[path]

    def _stores(self, seams: Seams) -> Buckets:
        limits = StoreLimits(requests_inflight_max=4, inflight_bytes_max=64 << 20)

        def opened(bucket: SimBucket) -> ObjectStore:
            backend = SimBackend(bucket, seams.process)
            return BucketStore(backend, title=bucket.name, limits=limits, timeout_ms=5_000)

        stores = {name: opened(bucket) for name, bucket in self.buckets.items()}
        return Buckets(
            stores,
            self.tiered.labels_of_buckets,
            lambda url: opened(self.other_bucket(url.container)),
        )

    # ---- time ----------------------------------------------------------------------------------

    def advance(self, duration_ms: int) -> None:
        """Let time go by."""
        self.scheduler.run_until(self.scheduler.now_us + duration_ms * US_PER_MS)

    def until(
        self, condition: Callable[[], bool], *, every_ms: int = 0, limit_ms: int = LIMIT_MS
    ) -> None:
        """Let time go by until `condition` holds; looked at so often, or after every event."""
        limit_us = self.scheduler.now_us + limit_ms * US_PER_MS
        if every_ms:
            while not condition():
                assert self.scheduler.now_us < limit_us, "it never came true"
                self.advance(every_ms)
            return
        assert self.scheduler.run_until_true(condition, limit_us=limit_us), "it never came true"

    def until_started(self, *brokers: int) -> None:
        """Until these brokers, or all, have joined."""
        wanted = brokers or tuple(self.hosts)
        self.until(lambda: all(self.starts[one].done() for one in wanted))
        for one in wanted:
            self.starts[one].result()

    def lose_power(self) -> None:
        """Everywhere at once; returns when all brokers have joined again."""
        for host in self.hosts.values():
            host.fail_power()
        self.advance(100)
        for host in self.hosts.values():
            host.start()
        self.until_started()

    def lose_power_of(self, broker: int, *, for_ms: int) -> None:
        """Of one broker; returns when it has joined again."""
        self.hosts[broker].fail_power()
        self.advance(for_ms)
        self.hosts[broker].start()
        self.until_started(broker)

    # ---- brokers -------------------------------------------------------------------------------

    def broker(self, broker: int) -> Broker:
        """The running broker."""
        program = self.hosts[broker].program
        assert program is not None
        return program

    def do(self, broker: int, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine on a broker, to its end."""
        tasks: list[asyncio.Task[T]] = []
        process = self.hosts[broker].process
        assert process is not None
        process.run_now(lambda: tasks.append(asyncio.get_running_loop().create_task(work)))
        self.until(tasks[0].done)
        return tasks[0].result()

    def submit(self, command: Command, *, at: int = 1) -> Answer:
        """Have a command carried out, given to broker `at`."""
        return self.do(at, self.broker(at).controller.submit(command))

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int = 3,
        configs: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Create a topic and wait until every partition is led."""
        topic = NewTopic(
            name=name, partitions=partitions, replication_factor=replicas, configs=configs
        )
        answer = self.submit(CreateTopics((topic,)))
        assert isinstance(answer, TopicResults)
        assert answer.topics[0].error_code == 0, answer
        self.until(lambda: all(self.leader_of(name, one) for one in range(partitions)))

    def replicas_of(self, topic: str, index: int = 0) -> dict[int, Replica]:
        """{broker: its replica} of a partition, on brokers that run."""
        found = {}
        for one, host in self.hosts.items():
            if host.program is not None:
                for replica in host.program.replication.replicas.values():
                    if replica.name == f"{topic}-{index}":
                        found[one] = replica
        return found

    def leader_of(self, topic: str, index: int = 0) -> int:
        """The broker that leads and serves a partition; 0 for none."""
        for one, replica in self.replicas_of(topic, index).items():
            if replica.can_serve_reads:
                return one
        return 0

    def controller(self, broker: int) -> Replica:
        """A broker's replica of the controller's group."""
        return self.broker(broker).replication.replicas[CONTROLLER_GROUP]

    def directories(self, broker: int) -> list[str]:
        """The logs on a broker's disk."""
        names = self.broker(broker).replication.disk.list_directory(f"{DATA_DIRECTORY}/logs")
        return [name for name in names if not name.startswith("@")]

    # ---- clients -------------------------------------------------------------------------------

    def ask(
        self, broker: int, request: Message, answer: type[R], version: int, *, host: str = ""
    ) -> R:
        """Send a request to one broker, from an address, and wait for its answer."""
        pending = self.send(broker, request, version, host=host)
        self.until(lambda: pending.is_answered)
        return pending.answer(answer)

    def send(
        self,
        broker: int,
        request: Message,
        version: int,
        *,
        host: str = "",
        connection: int = 1,
        sink: Sink | None = None,
    ) -> Pending:
        """Hand a request in, on a connection of this number, or on `sink`; its answer may wait for
        others."""
        router = self.broker(broker).router
        pending = Pending(Sink() if sink is None else sink)
        if sink is None:
            pending.sink.number = connection
        if host:
            pending.sink.client_host = f"/{host}"
        pending.context = router.open(memoryview(frame_of(request, version)), pending.sink)
        process = self.hosts[broker].process
        assert process is not None
        process.run_now(lambda: router.run(pending.context))
        return pending

    def close(self) -> None:
        """End it; no task may have failed where nobody looks."""
        errors = [error for host in self.hosts.values() for error in host.loop_errors]
        for host in self.hosts.values():
            host.kill()
        assert errors == []


@contextmanager
def joined(world: ClusterWorld) -> Iterator[ClusterWorld]:
    """Once all its brokers have joined."""
    world.until_started()
    yield world
    world.close()


@contextmanager
def three_brokers(*, scrub_rate: int = 0, reserve_bytes: int = 0) -> Iterator[ClusterWorld]:
    """The controller's voters alone, once they have joined."""
    with joined(ClusterWorld(VOTERS, scrub_rate=scrub_rate, reserve_bytes=reserve_bytes)) as world:
        yield world
