"""A machine of several brokers leaves the cluster for good, as the page says.

Source: docs/operating/cores.md; docs/decisions/0071-cores.md."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import DevCluster, run, wait_until
from tests.integration.machines import Machine, cluster_of, machines
from tests.integration.metadata import metadata_of, partitions_of
from tests.integration.pages import commands, try_line, type_in
from tests.integration.placed_load import PARTITIONS, TOPIC, Load, expect_read

pytestmark = pytest.mark.integration

PAGE, TITLE = "cores.md", "Take a machine away for good"
DOWN_S, EMPTY_S = 60, 120


@pytest.fixture
def three(tmp_path: Path) -> Iterator[list[Machine]]:
    """Three machines of two brokers each, which serve; the first brokers are the seeds."""
    with machines(tmp_path, 3, seeds=(1, 2, 3)) as made:
        for one in made:
            one.start()
        for one in made:
            one.wait_ready()
        yield made


def lines_for(machine: Machine, block: str) -> list[str]:
    """The commands of the page, for this machine. `block`: "leave" or "forget"."""
    lines = commands(PAGE, TITLE, 0) if block == "leave" else commands(PAGE, TITLE, 1)
    return [one.replace("node-1", f"node-{machine.number}") for one in lines]


def create(cluster: DevCluster, topic: str, replicas: int) -> None:
    cluster.run(
        "topic", "create", topic, "-p", str(PARTITIONS), "-r", str(replicas),
        "-b", cluster.bootstrap,
    )  # fmt: skip


def leaving(bootstrap: str) -> dict[int, bool]:
    """{broker that is being decommissioned: whether it is empty}"""
    told = json.loads(run("broker", "status", "--json", "-b", bootstrap).stdout)
    return {one["broker"]: one["empty"] for one in told["leaving"]}


def are_empty(bootstrap: str, machine: Machine) -> bool:
    return leaving(bootstrap) == dict.fromkeys(machine.ids, True)


def registered(admin: AdminClient) -> set[int]:
    return set(metadata_of(admin).brokers)


def forget(cluster: DevCluster, machine: Machine) -> None:
    """Type what the page says, until the controller sees that the machine is down."""
    (line,) = lines_for(machine, "forget")
    told: list[subprocess.CompletedProcess[str]] = []

    def is_done() -> bool:
        told.append(try_line(cluster, line))
        return told[-1].returncode == 0

    wait_until(is_done, what="the controller sees that it is down", timeout_s=DOWN_S)
    assert told[-1].stdout == f"brokers {','.join(map(str, machine.ids))} are removed from the " \
        "cluster\n"  # fmt: skip
    assert all("are up" in one.stderr or "is up" in one.stderr for one in told[:-1])


def leader_first(made: Sequence[Machine], admin: AdminClient) -> list[Machine]:
    """The machine of the controller's leader, and the others."""
    leader = metadata_of(admin).controller_id
    return sorted(made, key=lambda one: leader not in one.ids)


def test_the_machine_of_the_controllers_leader_leaves_for_good_while_topics_are_written(
    three: list[Machine],
) -> None:
    everywhere = cluster_of(three)
    admin = AdminClient({"bootstrap.servers": everywhere.bootstrap})
    victim, *others = leader_first(three, admin)
    cluster = cluster_of(others)
    create(cluster, TOPIC, 2)
    create(cluster, "wide", 3)
    refused = try_line(cluster, lines_for(victim, "leave")[1])
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1
    assert "topic wide has 3 replicas for different hosts, and without brokers" in refused.stderr
    assert "add a machine" in refused.stderr and leaving(cluster.bootstrap) == {}
    cluster.run("topic", "delete", "wide", "-b", cluster.bootstrap)
    load = Load(cluster.bootstrap)
    try:
        wait_until(lambda: load.count > 200, what="the load")
        told = type_in(cluster, lines_for(victim, "leave"))
        named = ",".join(map(str, victim.ids))
        assert f"brokers {named} would be emptied: " in told and "nothing changed" in told
        assert f"brokers {named}: their replicas move away; see" in told
        # Its supervisor starts a broker that dies; that one goes on leaving.
        os.kill(victim.pids()[1], signal.SIGKILL)
        wait_until(lambda: are_empty(cluster.bootstrap, victim), what="empty", timeout_s=EMPTY_S)
        victim.wait_ready()
        assert are_empty(cluster.bootstrap, victim)
        up = try_line(cluster, lines_for(victim, "forget")[0])
        assert up.returncode == 1 and f"brokers {named} are up: stop the machine's" in up.stderr
        for one in partitions_of(admin, TOPIC).values():
            assert {replica // 100 for replica in one.replicas} == {one.number for one in others}
        before = load.count
        assert victim.stop() == 0
        forget(cluster, victim)
        wait_until(lambda: load.count > before + 200, what="more load")
    finally:
        load.stop()
    left = {broker for one in others for broker in one.ids}
    asked = AdminClient({"bootstrap.servers": cluster.bootstrap})
    wait_until(lambda: registered(asked) == left, what="all brokers hear of it")
    expect_read(cluster, load.written)
    again = try_line(cluster, lines_for(victim, "forget")[0])
    assert again.returncode == 1 and "no broker has this label host" in again.stderr


def test_brokers_that_were_unregistered_are_not_started_again_as_new_ones(
    three: list[Machine],
) -> None:
    """One was cut off, the other one was dead and waited for its start."""
    *others, victim = three
    cluster = cluster_of(others)
    type_in(cluster, lines_for(victim, "leave"))
    wait_until(lambda: are_empty(cluster.bootstrap, victim), what="empty", timeout_s=EMPTY_S)
    silent, dead = victim.pids()
    assert victim.process is not None
    os.kill(victim.process.pid, signal.SIGSTOP)
    try:
        os.kill(silent, signal.SIGSTOP)
        try:
            os.kill(dead, signal.SIGKILL)
            forget(cluster, victim)
        finally:
            os.kill(silent, signal.SIGCONT)
    finally:
        os.kill(victim.process.pid, signal.SIGCONT)
    health = "0 of 2 brokers serve\nbroker 300 is unregistered\nbroker 301 is unregistered\n"
    wait_until(lambda: victim.ask("/healthz") == (200, health), what="both end", timeout_s=EMPTY_S)
    told = victim.processes()
    assert (told[300]["starts"], told[301]["starts"]) == (1, 2)
    assert {one["next_start_ms"] for one in told.values()} == {None}
    assert victim.log.count("this supervisor does not start it again") == 2
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    stay = {broker for one in others for broker in one.ids}
    wait_until(lambda: registered(admin) == stay, what="all brokers hear of it")
    # A person may have them join anew.
    assert victim.stop() == 0
    victim.start()
    victim.wait_ready()
    wait_until(lambda: registered(admin) == {*stay, 300, 301}, what="all brokers hear of it")
    assert leaving(cluster.bootstrap) == {}


def test_a_supervisor_that_is_started_twice_is_refused_and_the_first_one_runs_on(
    tmp_path: Path,
) -> None:
    with machines(tmp_path, 1) as (one,):
        one.start()
        one.wait_ready()
        first, pids = one.process, one.pids()
        one.start()
        assert one.process is not None and one.process.wait(DOWN_S) == 1
        one.process = first
        (refusal,) = (line for line in one.log.splitlines() if line.startswith("error: "))
        assert refusal.endswith("is in use by another supervisor; stop that one first")
        assert one.pids() == pids and one.ask("/readyz")[0] == 200


def test_two_machines_of_one_name_are_not_taken_for_one_where_their_racks_differ(
    tmp_path: Path,
) -> None:
    with machines(tmp_path, 2) as (first, second):
        for one in (first, second):
            one.write()
            text = one.file.read_text().replace(f'host = "node-{one.number}"', 'host = "node"')
            one.text = text.replace(
                "[broker.labels]\n", f'[broker.labels]\nrack = "r{one.number}"\n'
            )
            one.start()
        for one in (first, second):
            one.wait_ready()
        told = run("broker", "decommission", "--host", "node", "-b", first.bootstrap, check=False)
        assert told.returncode == 1
        assert "brokers 100,101,200,201 have it in several regions, zones or racks" in told.stderr
        assert leaving(first.bootstrap) == {}
