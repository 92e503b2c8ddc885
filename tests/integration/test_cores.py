"""Machines of several brokers: real supervisors, real processes, and the page about them.

Source: docs/operating/cores.md; docs/decisions/0071-cores.md."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import COMMAND, run, wait_until
from tests.integration.machines import Machine, cluster_of, is_running, machines
from tests.integration.metadata import partitions_of
from tests.integration.pages import commands, type_in
from tests.integration.placed_load import PARTITIONS, TOPIC, Load, expect_read

pytestmark = pytest.mark.integration

PAGE = "cores.md"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[list[Machine]]:
    """Two machines of two brokers each, which serve."""
    with machines(tmp_path, 2) as made:
        for one in made:
            one.start()
        for one in made:
            one.wait_ready()
        yield made


def leads(bootstrap: str) -> dict[int, int]:
    """{broker in maintenance: how many partitions it leads}"""
    told = json.loads(run("broker", "status", "--json", "-b", bootstrap).stdout)
    return {one["broker"]: one["leads"] for one in told["maintenance"]}


def test_brokers_of_a_machine_come_and_end_with_their_supervisor(tmp_path: Path) -> None:
    with machines(tmp_path, 1) as (one,):
        one.write()
        check, _ = commands(PAGE, "One file for a machine", 1)
        typed = check.replace("strandline", COMMAND, 1)
        typed = typed.replace("/etc/strandline/node-1.toml", str(one.file))
        told = subprocess.run(typed.split(), capture_output=True, text=True, check=True).stdout
        assert told.startswith(f"{one.file}: brokers 100,101: no mistakes\nbroker 100: PLAINTEXT")
        one.start()
        one.wait_ready()
        first = one.pids()
        assert len(set(first)) == 2 and all(map(is_running, first))
        # kill -9 of the supervisor leaves no orphan, and the next one takes over.
        one.kill()
        wait_until(lambda: not any(map(is_running, first)), what="no orphans")
        assert one.log.count("event=ending") == 2
        one.start()
        one.wait_ready()
        second = one.pids()
        # Ctrl-C in a terminal goes to the supervisor's group, in which no broker is.
        assert one.process is not None
        assert {os.getpgid(pid) for pid in second}.isdisjoint({os.getpgid(one.process.pid)})
        assert one.stop(signal.SIGINT) == 0
        assert not any(map(is_running, second))
        assert one.log.count("ended with exit code 0") == 2


def test_what_is_written_through_one_broker_is_read_through_all_whatever_dies(
    two: list[Machine],
) -> None:
    cluster = cluster_of(two)
    cluster.run("topic", "create", TOPIC, "-p", str(PARTITIONS), "-r", "2", "-b", cluster.bootstrap)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    wait_until(
        lambda: (
            {one.leader for one in partitions_of(admin, TOPIC).values()} == {100, 101, 200, 201}
        ),
        what="leaders on all brokers",
    )
    for one in partitions_of(admin, TOPIC).values():
        assert {replica // 100 for replica in one.replicas} == {1, 2}, "one on each machine"
    load = Load(cluster.bootstrap)
    try:
        wait_until(lambda: load.count > 200, what="the load")
        victim, other = two[1].pids()
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: two[1].ask("/readyz")[0] == 503, what="not ready")
        assert two[1].ask("/healthz")[0] == 200
        two[1].wait_ready()
        told = two[1].processes()
        assert (told[200]["starts"], told[200]["last_end"]) == (2, "was killed by SIGKILL")
        assert (told[201]["starts"], told[201]["pid"]) == (1, other)
        before = load.count
        wait_until(lambda: load.count > before + 200, what="more load")
    finally:
        load.stop()
    for machine in two:
        for address in machine.bootstrap.split(","):
            cluster.bootstrap = address
            expect_read(cluster, load.written)
    status, text = two[1].ask("/metrics")
    assert status == 200
    for broker in (200, 201):
        assert f'strandline_broker_ready{{broker="{broker}"}} 1.0' in text
    assert 'strandline_process_starts_total{broker="200"} 2' in text
    assert text.count("# TYPE strandline_broker_ready ") == 1
    series = re.compile(rf'strandline_partition_log_end_offset{{broker="\d+",topic="{TOPIC}"')

    def led() -> int:
        return sum(len(series.findall(machine.ask("/metrics")[1])) for machine in two)

    wait_until(lambda: led() == PARTITIONS, what="each partition is told by its leader")


def test_a_machine_is_taken_down_and_brought_back_as_the_page_says_and_no_write_fails(
    tmp_path: Path,
) -> None:
    title = "Take a machine down"
    with machines(tmp_path, 3, seeds=(1, 2, 3)) as made:
        first, _, third = made
        third.cores = 1
        for one in made:
            one.start()
        for one in made:
            one.wait_ready()
        cluster = cluster_of(made)
        cluster.run(
            "topic", "create", TOPIC, "-p", str(PARTITIONS), "-r", "3", "-b", cluster.bootstrap
        )
        plan = run("cluster", "upgrade", "plan", "-b", cluster.bootstrap).stdout
        assert all(f"domain node-{number}" in plan for number in (1, 2, 3))
        load = Load(cluster.bootstrap)
        try:
            wait_until(lambda: load.count > 200, what="the load")
            told = type_in(cluster, commands(PAGE, title, 0))
            assert told.startswith("in maintenance: 100,101;")
            wait_until(lambda: leads(cluster.bootstrap) == {100: 0, 101: 0}, what="other leaders")
            refused = run(
                "broker", "maintain", "--host", "node-2", "-b", cluster.bootstrap, check=False
            )
            assert refused.returncode == 1 and "could not be written" in refused.stderr
            assert first.stop() == 0
            before = load.count
            wait_until(lambda: load.count > before + 200, what="more load")
            first.start()
            first.wait_ready()
            assert type_in(cluster, commands(PAGE, title, 1)) == "maintenance ended: 100,101\n"
        finally:
            load.stop()
        expect_read(cluster, load.written)


def test_more_cores_add_brokers_and_fewer_leave_out_only_empty_ones_as_the_page_says(
    two: list[Machine],
) -> None:
    first, second = two
    cluster = cluster_of([first])
    title = "More or fewer cores"
    empty, forget = (
        [one.replace("101", "202") for one in lines]
        for lines in (commands(PAGE, title, 0), commands(PAGE, title, 1))
    )
    second.stop()
    second.cores = 3
    second.start()
    second.wait_ready()
    assert list(second.processes()) == [200, 201, 202]
    run("topic", "create", TOPIC, "-p", "6", "-r", "2", "-b", first.bootstrap)
    placed = partitions_of(AdminClient({"bootstrap.servers": first.bootstrap}), TOPIC).values()
    assert any(202 in one.replicas for one in placed)
    second.stop()
    second.cores = 2
    second.start()
    assert second.process is not None and second.process.wait(60) == 1
    assert "--cores 2 leaves out broker 202, and " in second.log
    second.cores = 3
    second.start()
    second.wait_ready()
    type_in(cluster, empty)

    def is_empty() -> bool:
        return "broker 202 is empty: you may stop it" in type_in(cluster, empty[1:])

    wait_until(is_empty, what="an empty broker", timeout_s=90)
    second.stop()
    second.cores = 2
    second.start()
    second.wait_ready()
    assert f"{second.data}/broker-202 is of broker 202, which does not run here" in second.log

    def is_unregistered() -> bool:
        line = forget[0].replace("strandline", COMMAND, 1)
        return subprocess.run([*line.split(), "-b", first.bootstrap], check=False).returncode == 0

    wait_until(is_unregistered, what="the controller sees that it is down")


def test_ids_of_two_machines_that_overlap_are_told_and_the_first_broker_stays(
    tmp_path: Path,
) -> None:
    with machines(tmp_path, 2) as (first, second):
        first.start()
        first.wait_ready()
        second.first_id, second.cores = 101, 1
        second.start()
        wait_until(
            lambda: "if another broker has the id 101, the answers go there" in second.log,
            what="a hint", timeout_s=60,
        )  # fmt: skip
        assert "two brokers have the id 101: the one at 127.0.0.1:" in first.log
        assert second.ask("/healthz")[0] == 200 and second.ask("/readyz")[0] == 503
        assert "ended with exit code" not in first.log
        assert first.ask("/readyz")[0] == 200
