"""Five brokers in three regions, 2 + 2 + 1, with a wide area between them; Kafka's beside.

How:    each broker is in a network namespace of its own (root); round trips, jitter and loss are
        those of the profile `atl` (`chaos.relay`) unless a scenario asks for another one. Topics
        have replicas everywhere, and prefer leaders in the east.
Source: reference/regions-rtt.md, the profiles."""

import ctypes
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.brokers import Brokers
from chaos.hosts import (
    ATLANTIC,
    BOOTSTRAP,
    BROKER_IDS,
    BROKERS,
    CLIENTS,
    Host,
    Profile,
    links_between,
)
from chaos.network import Network
from chaos.plan import Fault
from chaos.targets import Kind, Target
from confluent_kafka import ElectionType, KafkaException
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic

from bench.clusters import KAFKA_SCRIPTS, has_kafka

CLIENT_HOST = CLIENTS[1]
"""In the west."""
PREFERRED = (1, 2)
PARTITIONS = 6
STEADY_S_MAX = 300.0
ASK_S = 10.0
CLONE_NEWNET = 0x40000000
Count = Callable[[Network, str, str], None]
"""Counts what crosses between the brokers of a system: (network, system, bootstrap)."""


@contextmanager
def strandline_far_apart(work: Path, profile: Profile = ATLANTIC) -> Iterator[Network]:
    """Five brokers that serve, and the network between them."""
    directory = work / "strandline"
    directory.mkdir(parents=True)
    with Network(directory, profile) as network:
        brokers = Brokers(directory, network, frugal=0)
        try:
            brokers.start(BROKER_IDS)
            yield network
        finally:
            brokers.end()


@contextmanager
def kafka_far_apart(work: Path, profile: Profile = ATLANTIC) -> Iterator[tuple[Network, str]]:
    """The same of Kafka's, and where they are to be found."""
    directory = work / "kafka"
    (directory / "wan").mkdir(parents=True)
    with Network(directory, profile) as network:
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


def count_both(work: Path, count: Count, profile: Profile = ATLANTIC) -> None:
    """Strandline's brokers, then Kafka's if it is installed, each on a network of their own."""
    with strandline_far_apart(work, profile) as network:
        count(network, "strandline", BOOTSTRAP)
    if has_kafka():
        with kafka_far_apart(work, profile) as (network, bootstrap):
            count(network, "kafka", bootstrap)


def sent_between_regions(network: Network) -> tuple[int, int]:
    """Packets and bytes that brokers have sent to brokers of other regions so far."""
    regions = {one.name: one.region for one in BROKERS}
    counts = [
        count
        for (one, other), count in network.sent().items()
        if one in regions and other in regions and regions[one] != regions[other]
    ]
    return sum(one.packets for one in counts), sum(one.size_bytes for one in counts)


@contextmanager
def placed_on(network: Network, host: Host = CLIENT_HOST) -> Iterator[None]:
    """This thread, and those that it starts, are on a clients' host meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    away = os.open(network.namespace(host), os.O_RDONLY)
    try:
        if libc.setns(away, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        libc.setns(home, CLONE_NEWNET)
        os.close(home)
        os.close(away)


def cut_off(name: str, inside: tuple[Host, ...], outside: tuple[Host, ...]) -> Fault:
    """Neither reaches the other, both ways."""
    links = (*links_between(inside, outside), *links_between(outside, inside))
    return Fault(1, 0, 1, Kind.CUT, Target(name, links=links))


def make_topic(admin: AdminClient, name: str, *, partitions: int = PARTITIONS) -> None:
    """Its preferred leaders are in the east, its other replicas everywhere."""
    rows = []
    for number in range(partitions):
        first = PREFERRED[number % len(PREFERRED)]
        rows.append([first, *(one for one in BROKER_IDS if one != first)])
    topic = NewTopic(name, partitions, replica_assignment=rows, config={"min.insync.replicas": "3"})
    end = time.monotonic() + STEADY_S_MAX
    while True:
        try:
            if len(admin.list_topics(timeout=ASK_S).brokers) == len(BROKER_IDS):
                admin.create_topics([topic])[name].result(ASK_S)
                return
        except KafkaException:
            if time.monotonic() > end:
                raise
        time.sleep(1)


def wait_steady(
    admin: AdminClient, name: str, *, partitions: int = PARTITIONS, looks: int = 1
) -> None:
    """Until preferred replicas lead, and everybody is in sync, in so many looks in a row, a second
    apart: a broker that was cut off may tell of the time before."""
    end = time.monotonic() + STEADY_S_MAX
    seen = 0
    while True:
        found = {}
        try:
            found = admin.list_topics(name, timeout=ASK_S).topics[name].partitions
            if len(found) == partitions and all(
                one.leader == one.replicas[0] and len(one.isrs) == len(BROKER_IDS)
                for one in found.values()
            ):
                seen += 1
                if seen == looks:
                    return
                time.sleep(1)
                continue
            seen = 0
            if all(len(one.isrs) == len(BROKER_IDS) for one in found.values()):
                places = [Place(name, one) for one in found]
                admin.elect_leaders(ElectionType.PREFERRED, places).result(ASK_S)
        except (KafkaException, TimeoutError):
            seen = 0  # Asked again.
        if time.monotonic() > end:
            state = {one.id: (one.leader, one.isrs) for one in found.values()}
            raise TimeoutError(f"not steady after {STEADY_S_MAX:.0f} s: {state}")
        time.sleep(1)
