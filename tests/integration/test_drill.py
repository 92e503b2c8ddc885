"""A region of a real cluster is cut off and comes back, as the page about it says.

Source: docs/decisions/0019-drills.md; docs/operating/drills.md."""

import json
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.integration.conftest import (
    COMMAND,
    COMMAND_TIMEOUT_S,
    DevCluster,
    start_cluster,
    stop_cluster,
    wait_until,
)
from tests.integration.pages import commands, type_in

from strandline.cli.drill import region
from strandline.cli.drill.topics import TOPIC_PREFIX
from strandline.cli.exit_codes import INTERRUPTED
from strandline.client.admin import find_coordinator, list_groups
from strandline.client.cluster import Client
from strandline.client.operations.isolation import takes_clients
from strandline.client.operations.replica_status import replica_status
from strandline.client.producer import Producer
from strandline.config.addresses import parse_bootstrap
from strandline.model.cluster import Address

pytestmark = pytest.mark.integration

PAGE = "drills.md"
TITLE = "Lose a region on purpose"
STATUS_TITLE = "See how far each replica is"
FAILBACK_OFF = "auto.leader.rebalance.enable=false"
FAILBACK = "leader.imbalance.check.interval.seconds=1"
ANSWER_MS = 30_000
"""A broker that is cut off turns a client away at once; one that is busy answers late."""


def client_of(cluster: DevCluster, timeout_ms: int = 30_000) -> Client:
    return Client(parse_bootstrap(cluster.bootstrap), timeout_ms=timeout_ms)


def west_of(client: Client) -> Address:
    """Where the only broker of the west listens."""
    (found,) = [one for one in client.metadata().brokers.values() if one.rack == "west"]
    return found.address


def topics_of(cluster: DevCluster) -> list[str]:
    told = json.loads(cluster.run("topic", "list", "-b", cluster.bootstrap, "--json").stdout)
    return [one["name"] for one in told["topics"]]


def prepare(cluster: DevCluster) -> None:
    """Leaders go back at once, and a topic is there that goes on without the west."""
    cluster.run("cluster", "alter", "-c", FAILBACK, "-b", cluster.bootstrap)
    cluster.run("topic", "create", "orders", "-p", "3", "-r", "3", "-b", cluster.bootstrap)


def test_a_region_is_cut_off_and_comes_back_and_nothing_acknowledged_is_missing(
    own_cluster: DevCluster,
) -> None:
    prepare(own_cluster)
    with client_of(own_cluster) as client:  # The first group of a cluster brings its topic about.
        client.attempt(lambda until: find_coordinator(client, "billing", until))
    told = type_in(own_cluster, commands(PAGE, TITLE))
    assert told.splitlines()[-1] == "nothing done; add --yes to run the drill"
    assert "every topic continues" in told
    type_in(own_cluster, commands(PAGE, TITLE, block=3))  # Who is on call is left in peace.
    told = type_in(own_cluster, commands(PAGE, TITLE, block=1))
    counts = re.search(r"RPO: 0 of (\d+) acknowledged records lost; 0 of (\d+) consumed", told)
    assert counts is not None, told
    assert int(counts[1]) > 100 and int(counts[2]) > 100
    waits = [line.split() for line in told.splitlines() if re.match(r"\s+\d+\s+\d", line)]
    assert sorted(leader for _, leader, *_ in waits) == ["1", "1", "2", "2", "3", "3"]
    assert re.search(r"^as before \d+\.\d s after its return$", told, re.MULTILINE)
    assert topics_of(own_cluster) == ["orders"]
    expect_groups(own_cluster, told)
    told = type_in(own_cluster, commands(PAGE, STATUS_TITLE))
    assert told.count("\norders ") == 9 + 6 + 3


def expect_groups(cluster: DevCluster, told: str) -> None:
    """The group that the west coordinated has committed elsewhere meanwhile, and is gone."""
    rows = [line.split() for line in told.splitlines() if line.startswith(TOPIC_PREFIX)]
    ((_, coordinator, *words, longest_ms, p50_ms, joined),) = rows
    with client_of(cluster) as client:
        assert region.brokers_of(client, "west") == (int(coordinator),)
        assert list_groups(client) == []
    assert words == ["goes", "on", "elsewhere"]
    assert int(longest_ms) > int(p50_ms) > 0
    # A new coordinator knows the members of the old one.
    assert int(joined) == 0


def test_the_cut_ends_by_itself_when_the_command_is_killed(own_cluster: DevCluster) -> None:
    prepare(own_cluster)
    with client_of(own_cluster) as client:
        west = west_of(client)

        def is_there() -> bool:
            return takes_clients(client, west, timeout_ms=ANSWER_MS)

        def is_whole() -> bool:
            found = replica_status(client, ["orders"])
            return all(one.counts.get("InSyncReplicasCount") == 3 for one in found)

        wait_until(is_whole, what="all in sync")
        drill = subprocess.Popen(
            [COMMAND, "drill", "region", "--name", "west", "--for", "8", "--yes",
             "-b", own_cluster.bootstrap],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait_until(lambda: not is_there(), what="the cut")
        finally:
            drill.kill()
            drill.wait()
        # The others notice: it is cut off from them, too, and nobody undoes that.
        wait_until(lambda: not is_whole(), what="the others' notice")
        wait_until(is_there, what="clients are served again")
        wait_until(is_whole, what="all in sync again")


def test_another_terminal_ends_a_drill_and_an_interrupt_does(own_cluster: DevCluster) -> None:
    prepare(own_cluster)
    where = ("-b", own_cluster.bootstrap)
    with client_of(own_cluster) as client:
        west = west_of(client)

        def is_there() -> bool:
            return takes_clients(client, west, timeout_ms=ANSWER_MS)

        def drilled() -> "subprocess.Popen[str]":
            """A drill that would go on for minutes, once its cut has begun."""
            begun = subprocess.Popen(
                [COMMAND, "drill", "region", "--name", "west", "--for", "300", "--yes", *where],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                # Also where a shell has had it ignored.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )  # fmt: skip
            wait_until(lambda: not is_there(), what="the cut", timeout_s=COMMAND_TIMEOUT_S)
            return begun

        for ends_itself in (False, True):
            drill = drilled()
            try:
                if ends_itself:
                    drill.send_signal(signal.SIGINT)
                else:
                    told = type_in(own_cluster, commands(PAGE, TITLE, block=2))
                    assert "broker 2 is connected again" in told
                assert is_there() or ends_itself
                told, _ = drill.communicate(timeout=COMMAND_TIMEOUT_S)
            finally:
                drill.kill()
                drill.wait()
            assert is_there() and topics_of(own_cluster) == ["orders"], told
            assert list(client.metadata(None).topics) == ["orders"]  # No internal one, either.
            if ends_itself:
                assert drill.returncode == INTERRUPTED
                assert "broker 2 is connected again" in told
            else:
                assert "another command has ended the drill" in told


def test_what_is_foretold_to_go_on_with_an_observer_does(own_cluster: DevCluster) -> None:
    """Of two voters one is cut off: nobody else may vote before the observer is promoted."""
    where = ("-b", own_cluster.bootstrap)
    constraints = {
        "version": 2,
        "replicas": [{"count": 1, "constraints": {"rack": rack}} for rack in ("east", "west")],
        "observers": [{"count": 1, "constraints": {"rack": "south"}}],
        "observerPromotionPolicy": "under-min-isr",
    }
    own_cluster.run(
        "topic", "create", "orders", "-p", "2",
        "-c", f"confluent.placement.constraints={json.dumps(constraints)}",
        "-c", "min.insync.replicas=2", "-c", "voters.shrink.enable=false",
        *where,
    )  # fmt: skip
    told = own_cluster.run("drill", "region", "--name", "west", *where).stdout
    assert re.search(r"^orders +2 +2 +0$", told, re.MULTILINE), told
    own_cluster.run("topic", "alter", "orders", "--unset", "voters.shrink.enable", *where)
    told = own_cluster.run("drill", "region", "--name", "west", *where).stdout
    assert "  partitions that continue after observers stand in: orders (2)" in told.splitlines()
    assert "every topic continues" in told
    with client_of(own_cluster) as client:
        west = west_of(client)

        def votes() -> list[tuple[int, int]]:
            """(who is in sync, observers among them) of each partition."""
            counts = [one.counts for one in replica_status(client, ["orders"])]
            wanted = ("InSyncReplicasCount", "ObserversInIsrCount")
            return [(one.get(wanted[0], 0), one.get(wanted[1], 0)) for one in counts]

        wait_until(lambda: votes() == [(2, 0)] * 2, what="all in sync")
        drill = subprocess.Popen(
            [COMMAND, "drill", "region", "--name", "west", "--for", "60", "--yes", *where],
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: not takes_clients(client, west, timeout_ms=ANSWER_MS), what="a cut")
            wait_until(lambda: votes() == [(2, 1)] * 2, what="observers", timeout_s=50)
            producer = Producer(client, "orders")
            for partition in range(2):
                producer.send(b"without the west", partition=partition)
            producer.flush()
            assert not takes_clients(client, west, timeout_ms=ANSWER_MS)
            # Whoever ends the command leaves nothing behind.
            assert any(one.startswith(TOPIC_PREFIX) for one in topics_of(own_cluster))
            drill.terminate()
            assert drill.wait(COMMAND_TIMEOUT_S) == INTERRUPTED
            assert takes_clients(client, west, timeout_ms=ANSWER_MS)
            assert topics_of(own_cluster) == ["orders"]
        finally:
            drill.kill()
            drill.wait()


def test_a_planted_loss_is_reported(
    own_cluster: DevCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of one partition, as it is read in the end, lacks one record in its middle.

    Leaders do not go back by themselves, and are not waited for."""
    prepare(own_cluster)
    own_cluster.run("cluster", "alter", "-c", FAILBACK_OFF, "-b", own_cluster.bootstrap)
    read_all = region.read_all
    planted: list[int] = []

    def read_without_one(client: Client, topic: str) -> Mapping[int, dict[int, bytes]]:
        found = read_all(client, topic)
        offsets = sorted(found[1])
        planted.append(offsets[len(offsets) // 2])
        del found[1][planted[0]]
        return found

    monkeypatch.setattr(region, "read_all", read_without_one)
    with client_of(own_cluster) as client:
        settings = region.Settings("west", 2_000, partitions=3, steady_ms_max=60_000)
        drill = region.RegionDrill(
            client,
            lambda timeout_ms: client_of(own_cluster, timeout_ms),
            settings,
            region.brokers_of(client, "west"),
            tell=lambda line: None,
        )
        outcome = drill.run()
    assert outcome.unsteady == ()
    (lost,) = outcome.verdict.lost
    assert (lost.partition, lost.offset) == (1, planted[0])
    assert lost in outcome.verdict.retracted
    assert not outcome.verdict.holds


def test_brokers_that_do_not_allow_drills_refuse_them(tmp_path: Path) -> None:
    options = ("--set", "drills.enable=false")
    cluster = start_cluster(tmp_path / "cluster", regions="east=1,west=1", options=options)
    try:
        done = subprocess.run(
            [COMMAND, "drill", "region", "--name", "west", "--yes", "--force",
             "-b", cluster.bootstrap],
            capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S,
        )  # fmt: skip
        assert done.returncode == 1
        assert "broker 2: its configuration allows no drills: [drills] enable" in done.stderr
        with client_of(cluster) as client:
            assert takes_clients(client, west_of(client), timeout_ms=ANSWER_MS)
        assert topics_of(cluster) == []
    finally:
        stop_cluster(cluster)
