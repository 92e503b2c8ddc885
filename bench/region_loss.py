"""The region with the leaders is cut off, again and again: how long nobody could write, and whether
anything that was acknowledged is missing. Kafka in the same run.

Why:    this is what a stretched cluster is for; one time says little, as who leads the controller,
        and what was under way, is chance.
How:    `python -m bench.run region-loss` (root): five brokers, 2 + 2 + 1, each in a network
        namespace of its own; round trips, jitter and loss between them are those of the profile
        `atl` (`chaos.relay`). A producer in the west writes 10 Mbit/s of 1 KiB records to six
        partitions of five replicas, min.insync.replicas=3. Before each cut the preferred replicas
        lead, in the east, and everybody is in sync. A partition's writes have resumed with its
        first acknowledgement after the cut; a drill's time is that of its last partition.
Source: reference/regions-rtt.md, the profiles."""

import ctypes
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path

from chaos.brokers import Brokers
from chaos.hosts import (
    ATLANTIC,
    BOOTSTRAP,
    BROKER_IDS,
    BROKERS,
    CLIENTS,
    HOSTS,
    hosts_in,
    links_between,
)
from chaos.network import Network
from chaos.plan import Fault
from chaos.targets import Kind, Target
from confluent_kafka import ElectionType, KafkaException
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic

from bench.alone import Say
from bench.clusters import KAFKA_SCRIPTS, has_kafka
from bench.crossing import CLIENT, Writer, count_numbers

TOPIC = "crossing"
LOST_REGION, CLIENT_HOST = "east", CLIENTS[1]
PREFERRED = (1, 2)
PARTITIONS = 6
RATE = 1_220
"""Records of 1 KiB each second: 10 Mbit/s."""
CUT_S, CALM_S = 12.0, 4.0
RESUME_S_MAX, STEADY_S_MAX = 120.0, 300.0
POLL_S = 0.05
ASK_S = 10.0
CLONE_NEWNET = 0x40000000


def measure(work: Path, say: Say, *, drills: int, kafka_drills: int) -> None:
    """Both systems, each on a network of its own; a line for each drill and one for all."""
    with _strandline(work) as network:
        _drill(network, say, "strandline", count=drills)
    if has_kafka() and kafka_drills:
        with _kafka(work) as (network, bootstrap):
            _drill(network, say, "kafka", bootstrap=bootstrap, count=kafka_drills)


@contextmanager
def _strandline(work: Path) -> Iterator[Network]:
    directory = work / "strandline"
    directory.mkdir(parents=True)
    with Network(directory, ATLANTIC) as network:
        brokers = Brokers(directory, network, frugal=0)
        try:
            brokers.start(BROKER_IDS)
            yield network
        finally:
            brokers.end()


@contextmanager
def _kafka(work: Path) -> Iterator[tuple[Network, str]]:
    directory = work / "kafka"
    (directory / "wan").mkdir(parents=True)
    with Network(directory, ATLANTIC) as network:
        nodes = [
            f"node {one.name} {one.region} {network.namespace(one).name} {one.address}\n"
            for one in BROKERS
        ]
        (directory / "wan" / "router.conf").write_text("".join(nodes))
        script = KAFKA_SCRIPTS / "cluster"
        try:
            up = subprocess.run(
                [script, "up", str(directory), "--wan", str(directory)],
                check=True,
                capture_output=True,
                text=True,
            )
            yield network, json.loads(up.stdout)["bootstrap"]
        finally:
            subprocess.run([script, "down", str(directory)], check=True, capture_output=True)


def _drill(
    network: Network, say: Say, system: str, *, count: int, bootstrap: str = BOOTSTRAP
) -> None:
    outside = [host for host in HOSTS if host.region != LOST_REGION]
    inside = hosts_in(LOST_REGION)
    links = (*links_between(inside, tuple(outside)), *links_between(tuple(outside), inside))
    cut = Fault(1, 0, 1, Kind.CUT, Target(f"region {LOST_REGION}", links=links))
    took: list[float] = []
    with _placed_on(network):
        admin = AdminClient({**CLIENT, "bootstrap.servers": bootstrap})
        _make_topic(admin)
        writer = Writer(bootstrap, TOPIC, partitions=PARTITIONS, rate=RATE)
        try:
            for number in range(1, count + 1):
                _wait_steady(admin)
                time.sleep(CALM_S)
                begin = time.monotonic()
                network.set_faults([cut])
                writer.look_from(time.monotonic())
                resumed = _wait_resumed(writer)
                took.append(max(resumed.values()))
                say(
                    system=system,
                    drill=number,
                    resumed_s=round(took[-1], 2),
                    first_s=round(min(resumed.values()), 2),
                )
                time.sleep(max(0.0, begin + CUT_S - time.monotonic()))
                network.set_faults([])
            _wait_steady(admin)
        finally:
            writer.stop()
        counts = count_numbers(bootstrap, TOPIC, partitions=PARTITIONS, rack=CLIENT_HOST.region)
    took.sort()
    say(
        system=system,
        drills=count,
        p50_s=round(took[len(took) // 2], 2),
        p95_s=round(took[ceil(len(took) * 0.95) - 1], 2),
        longest_s=round(took[-1], 2),
        acknowledged=len(writer.acknowledged),
        lost=sum(number not in counts for number in writer.acknowledged),
        twice=sum(times > 1 for times in counts.values()),
        refused=len(writer.refused),
    )


@contextmanager
def _placed_on(network: Network) -> Iterator[None]:
    """This thread, and those that it starts, are on the clients' host meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    away = os.open(network.namespace(CLIENT_HOST), os.O_RDONLY)
    try:
        if libc.setns(away, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        libc.setns(home, CLONE_NEWNET)
        os.close(home)
        os.close(away)


def _make_topic(admin: AdminClient) -> None:
    """Its preferred leaders are in the region that will be lost, its other replicas everywhere."""
    rows = []
    for number in range(PARTITIONS):
        first = PREFERRED[number % len(PREFERRED)]
        rows.append([first, *(one for one in BROKER_IDS if one != first)])
    topic = NewTopic(
        TOPIC, PARTITIONS, replica_assignment=rows, config={"min.insync.replicas": "3"}
    )
    end = time.monotonic() + STEADY_S_MAX
    while True:
        try:
            if len(admin.list_topics(timeout=ASK_S).brokers) == len(BROKER_IDS):
                admin.create_topics([topic])[TOPIC].result(ASK_S)
                return
        except KafkaException:
            if time.monotonic() > end:
                raise
        time.sleep(1)


def _wait_steady(admin: AdminClient) -> None:
    """Until preferred replicas lead, and everybody is in sync."""
    end = time.monotonic() + STEADY_S_MAX
    while True:
        found = {}
        try:
            found = admin.list_topics(TOPIC, timeout=ASK_S).topics[TOPIC].partitions
            if len(found) == PARTITIONS and all(
                one.leader == one.replicas[0] and len(one.isrs) == len(BROKER_IDS)
                for one in found.values()
            ):
                return
            if all(len(one.isrs) == len(BROKER_IDS) for one in found.values()):
                places = [Place(TOPIC, one) for one in found]
                admin.elect_leaders(ElectionType.PREFERRED, places).result(ASK_S)
        except KafkaException:
            pass  # Asked again.
        if time.monotonic() > end:
            state = {one.id: (one.leader, one.isrs) for one in found.values()}
            raise TimeoutError(f"not steady after {STEADY_S_MAX:.0f} s: {state}")
        time.sleep(1)


def _wait_resumed(writer: Writer) -> dict[int, float]:
    end = time.monotonic() + RESUME_S_MAX
    while time.monotonic() < end:
        resumed = writer.resumed_s()
        if len(resumed) == PARTITIONS:
            return resumed
        time.sleep(POLL_S)
    raise TimeoutError(f"only partitions {sorted(resumed)} have resumed")
