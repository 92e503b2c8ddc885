"""Observers stand in for a data centre that is killed, and leave when it is back, while other
people's clients go on: none of them is changed, told anything, or started anew.

Source: docs/decisions/0025-promotion.md; docs/operating/outages.md; "Automatic Observer Promotion"
(the 2.5-data-centre example); Confluent's tutorial of multi-region clusters."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until
from tests.integration.pages import commands, type_in
from tests.integration.placed_load import PARTITIONS, TIMEOUT_S, TOPIC, Load, expect_read
from tests.integration.ports import free_ports
from tests.integration.test_metrics import of_partitions

pytestmark = pytest.mark.integration

PAGE = "outages.md"
STANDS_IN = "stands in for a voter"
CHANGE_TIMEOUT_S = 120
MORE = 20
"""Records of each partition after which clients are taken to go on."""


class GroupReader:
    """A consumer group of one librdkafka consumer that reads until it is stopped, and commits."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
            }
        )
        self._consumer.subscribe([TOPIC])
        self.read: dict[int, dict[int, bytes]] = {}
        self._is_over = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over:
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.read.setdefault(message.partition(), {})[message.offset()] = message.value()
        self._consumer.close()

    @property
    def count(self) -> int:
        return sum(map(len, self.read.values()))

    def stop(self) -> None:
        self._is_over = True
        self._thread.join()

    def in_order(self) -> dict[int, list[bytes]]:
        return {
            partition: [found[offset] for offset in sorted(found)]
            for partition, found in self.read.items()
        }


class Clients:
    """A producer with acks=all and a consumer group, both of librdkafka."""

    def __init__(self, bootstrap: str) -> None:
        self.load = Load(bootstrap)
        self.reader = GroupReader(bootstrap)

    def go_on(self) -> None:
        """Wait until more was acknowledged on each partition, and until more was read of each."""
        for told in (self.load.written, self.reader.read):
            before = {one: len(told.get(one, ())) for one in range(PARTITIONS)}
            wait_until(
                lambda t=told, b=before: all(len(t.get(one, ())) > b[one] + MORE for one in b),  # type: ignore[misc]
                what="both clients' work",
                timeout_s=CHANGE_TIMEOUT_S,
            )


@contextmanager
def clients_of(cluster: DevCluster) -> Iterator[Clients]:
    """No write may fail; what is acknowledged is there, and the group has been given all of it."""
    clients = Clients(cluster.bootstrap)
    load, reader = clients.load, clients.reader
    try:
        try:
            yield clients
        finally:
            load.stop()
        wait_until(lambda: reader.count >= load.count, what="the rest", timeout_s=TIMEOUT_S)
    finally:
        reader.stop()
    expect_read(cluster, load.written)
    assert reader.in_order() == load.written


@pytest.fixture
def centres(tmp_path: Path) -> Iterator[tuple[DevCluster, dict[int, str]]]:
    """Three brokers in each of two cities, a third site for the controller's quorum, and where
    each broker is scraped."""
    base = free_ports(1)[0]
    cluster = start_cluster(
        tmp_path / "cluster",
        regions="boston=3,york=3,third=1",
        options=("--set", f"metrics.port={base}"),
    )
    yield cluster, {one: f"http://127.0.0.1:{base + one - 1}" for one in cluster.brokers}
    stop_cluster(cluster)


def constraints(voters: Mapping[str, int], observers: Mapping[str, int]) -> str:
    """Confluent's JSON."""

    def listed(some: Mapping[str, int]) -> list[dict[str, object]]:
        return [{"count": count, "constraints": {"rack": rack}} for rack, count in some.items()]

    return json.dumps(
        {
            "version": 2,
            "replicas": listed(voters),
            "observers": listed(observers),
            "observerPromotionPolicy": "under-min-isr",
        }
    )


def create(cluster: DevCluster, *configs: str, min_insync: int) -> None:
    """The topic, and leaders that go back at once."""
    where = ("-b", cluster.bootstrap)
    failback = "leader.imbalance.check.interval.seconds=1"
    cluster.run("cluster", "alter", "-c", failback, *where)
    given = [("-c", one) for one in (f"min.insync.replicas={min_insync}", *configs)]
    options = [word for pair in given for word in pair]
    cluster.run("topic", "create", TOPIC, "-p", str(PARTITIONS), *options, *where)


def type_here(cluster: DevCluster, lines: list[str]) -> str:
    """What the page has, for the topic here."""
    return type_in(cluster, [one.replace("orders", TOPIC) for one in lines])


def described(cluster: DevCluster) -> list[dict[str, object]]:
    told = cluster.run("topic", "describe", TOPIC, "--json", "-b", cluster.bootstrap).stdout
    (topic,) = json.loads(told)["topics"]
    partitions: list[dict[str, object]] = topic["partitions"]
    return partitions


def counts(cluster: DevCluster) -> list[tuple[int, int]]:
    """(replicas in sync, observers among them) of each partition, by `replica status`."""
    told = cluster.run(
        "replica", "status", "--topics", TOPIC, "--json", "-b", cluster.bootstrap
    ).stdout
    metrics = [one["metrics"] for one in json.loads(told)["partitions"]]
    return [(one["InSyncReplicasCount"], one["ObserversInIsrCount"]) for one in metrics if one]


def wait_for(cluster: DevCluster, in_sync: int, observers: int) -> None:
    wait_until(
        lambda: counts(cluster) == [(in_sync, observers)] * PARTITIONS,
        what=f"{in_sync} in sync, {observers} observers among them",
        timeout_s=CHANGE_TIMEOUT_S,
    )


def is_as_placed(cluster: DevCluster) -> bool:
    """Whether the preferred replicas lead, and those in sync are the replicas without the
    observers."""
    for one in described(cluster):
        replicas, observers, in_sync = one["replicas"], one["observers"], one["in_sync"]
        assert isinstance(replicas, list) and isinstance(observers, list)
        assert isinstance(in_sync, list)
        own = [broker for broker in replicas if broker not in observers]
        if one["leader"] != own[0] or sorted(in_sync) != sorted(own):
            return False
    return True


def of_region(cluster: DevCluster, region: str) -> list[int]:
    shown = cluster.run("zone", "status", "--json", "-b", cluster.bootstrap).stdout
    (found,) = [one for one in json.loads(shown)["zones"] if one["name"] == region]
    brokers: list[int] = found["brokers"]
    return brokers


def test_a_data_centre_is_killed_and_an_observer_of_the_other_one_stands_in(
    centres: tuple[DevCluster, dict[int, str]],
) -> None:
    """Two voters and an observer in each city, and three have to acknowledge. The policy is the
    cluster's, so the third site has nothing of the groups' offsets, either."""
    cluster, pages = centres
    cities = {"boston": 2, "york": 2}
    policy = constraints(cities, dict.fromkeys(cities, 1))
    default = f"confluent.log.placement.constraints={policy}"
    cluster.run("cluster", "alter", "-c", default, "-b", cluster.bootstrap)
    create(cluster, min_insync=3)
    with clients_of(cluster) as clients:
        clients.go_on()
        wait_until(lambda: is_as_placed(cluster), what="the beginning", timeout_s=CHANGE_TIMEOUT_S)
        boston, york = of_region(cluster, "boston"), of_region(cluster, "york")
        for broker in boston:
            cluster.kill(broker)
        clients.go_on()
        wait_for(cluster, in_sync=3, observers=1)
        wait_until(
            lambda: all(
                set(one["in_sync"]) == set(york) and one["leader"] in york  # type: ignore[call-overload]
                for one in described(cluster)
            ),
            what="all of York in sync",
        )
        left = {one: url for one, url in pages.items() if one not in boston}
        for name, value in (("in_sync_replicas", 3), ("observers_in_isr", 1)):
            metric = f"strandline_partition_{name}"
            told = dict.fromkeys(range(PARTITIONS), value)
            wait_until(
                lambda m=metric, t=told: of_partitions(left, m) == t,  # type: ignore[misc]
                what=name,
            )
        for broker in boston:
            cluster.start(broker)
        clients.go_on()
        wait_for(cluster, in_sync=4, observers=0)
        wait_until(lambda: is_as_placed(cluster), what="all as before", timeout_s=CHANGE_TIMEOUT_S)
        clients.go_on()


def test_the_tutorial_s_sequence_with_clients_that_go_on(five: DevCluster) -> None:
    """Two voters in the west, two observers in the east; the west is lost one by one."""
    policy = constraints({"west": 2}, {"east": 2})
    create(five, f"confluent.placement.constraints={policy}", min_insync=2)
    with clients_of(five) as clients:
        clients.go_on()
        first, second = of_region(five, "west")
        five.kill(first)
        clients.go_on()
        wait_for(five, in_sync=2, observers=1)
        assert {one["leader"] for one in described(five)} == {second}
        told = type_here(five, commands(PAGE, "Who votes now"))
        assert told.count(STANDS_IN) == PARTITIONS and "ObserversInIsrCount" in told
        five.kill(second)
        clients.go_on()
        wait_for(five, in_sync=2, observers=2)
        east = of_region(five, "east")
        assert all(one["leader"] in east for one in described(five))
        told = five.run("topic", "explain", TOPIC, "-b", five.bootstrap).stdout
        assert "run with other voters" in told and "acks=all is refused by" not in told
        planned = five.run("cluster", "upgrade", "next", "-b", five.bootstrap, check=False).stdout
        assert all(f"of brokers {min(east)}, {max(east)}" in planned for _ in east)
        told = type_here(five, commands(PAGE, "Too few replicas are left"))
        assert "nothing is lost" in told and "AT RISK" not in told
        for broker in (first, second):
            five.start(broker)
        clients.go_on()
        wait_for(five, in_sync=2, observers=0)
        wait_until(lambda: is_as_placed(five), what="all as before", timeout_s=CHANGE_TIMEOUT_S)
        assert STANDS_IN not in type_here(five, commands(PAGE, "Who votes now"))
        clients.go_on()
