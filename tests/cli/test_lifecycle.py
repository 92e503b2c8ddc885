"""Local clusters: processes are the right ones, starts are whole or not at all."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.base.errors import OperatorError
from strandline.cli.dev.lifecycle import LocalCluster, StartOptions, last_line
from strandline.cli.dev.processes import (
    ProcessMark,
    ProcessState,
    kill_processes,
    live_mark,
    read_mark,
    stop_processes,
    wait_gone,
    write_mark,
)
from strandline.cli.dev.spawner import Spawn
from strandline.config.load import load_broker_config
from strandline.model.cluster import Address

REGIONS = "east=2,west=1"


class FakeBrokers:
    """Stands for the spawner: processes that sleep, and a cluster that answers for them."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.cluster = FakeCluster(0)
        self.fails: dict[int, str] = {}
        self.spawned: list[int] = []

    def spawn(self, wanted: Sequence[Spawn]) -> None:
        for one in wanted:
            self.spawned.append(one.id)
            if one.id in self.fails:
                Path(one.log).write_text(f"one line\nerror: {self.fails[one.id]}\n")
                continue
            process = subprocess.Popen(["sleep", "1000"])
            self.processes.append(process)
            mark = ProcessMark.of(process.pid)
            assert mark is not None
            write_mark(Path(one.pid), mark)
            text = Path(one.config).read_text()
            port = int(text.split("kafka_port = ")[1].split()[0])
            self.cluster.brokers[one.id] = Address("127.0.0.1", port)

    def reap(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def brokers() -> Iterator[FakeBrokers]:
    fake = FakeBrokers()
    yield fake
    fake.reap()


def open_cluster(
    path: Path, brokers: FakeBrokers, *, taken: frozenset[int] = frozenset()
) -> LocalCluster:
    return LocalCluster(
        path,
        spawn=brokers.spawn,
        transport=FakeTransport(brokers.cluster),
        is_free=lambda port: port not in taken,
        start_timeout_ms=2_000,
    )


def start(cluster: LocalCluster, options: StartOptions | None = None) -> list[int]:
    plan = cluster.start(
        options or StartOptions(port_base=20_000), default_regions=REGIONS, new_id="dev-1"
    )
    return [one.id for one in plan.brokers]


def states(cluster: LocalCluster) -> dict[int, str]:
    return {
        one.broker.id: "serving" if one.is_serving else one.state.value
        for one in cluster.status()[1]
    }


def test_a_start_returns_when_every_broker_serves(tmp_path: Path, brokers: FakeBrokers) -> None:
    cluster = open_cluster(tmp_path / "c", brokers)
    assert start(cluster) == [1, 2, 3]
    assert states(cluster) == {1: "serving", 2: "serving", 3: "serving"}


def test_a_second_start_keeps_ports_and_starts_only_what_is_down(
    tmp_path: Path, brokers: FakeBrokers
) -> None:
    cluster = open_cluster(tmp_path, brokers)
    start(cluster)
    first, _ = cluster.status()
    assert cluster.kill_brokers(lambda plan: plan.brokers_in("west")) == [3]
    assert states(cluster)[3] == "down"
    start(open_cluster(tmp_path, brokers), StartOptions(port_base=30_000))
    assert brokers.spawned == [1, 2, 3, 3]
    assert cluster.status()[0] == first


def test_a_start_with_other_regions_is_refused(tmp_path: Path, brokers: FakeBrokers) -> None:
    cluster = open_cluster(tmp_path, brokers)
    start(cluster)
    start(cluster, StartOptions(regions=REGIONS))
    with pytest.raises(OperatorError, match="holds a cluster with regions east=2,west=1"):
        start(cluster, StartOptions(regions="east=3"))


def test_round_trips_change_only_while_everything_is_down(
    tmp_path: Path, brokers: FakeBrokers
) -> None:
    cluster = open_cluster(tmp_path, brokers)
    start(cluster)
    with pytest.raises(OperatorError, match="--set and --tiered cannot change while brokers run"):
        start(cluster, StartOptions(rtt="east-west=30"))
    cluster.stop(remove=False)
    start(cluster, StartOptions(rtt="east-west=30", settings=("log.level=debug",)))
    config = (tmp_path / "broker-1" / "config.toml").read_text()
    assert 'peer_rtt = ["3=30"]' in config and 'level = "debug"' in config
    start(cluster)
    assert cluster.status()[0].rtt_ms == {("east", "west"): 30}


def test_each_region_gets_a_bucket_of_its_own_and_keeps_it(
    tmp_path: Path, brokers: FakeBrokers
) -> None:
    """Also where the directory's name has characters that a list or a URL would take apart."""
    root = tmp_path / "my, dir?"
    cluster = open_cluster(root, brokers)
    start(cluster, StartOptions(port_base=20_000, is_tiered=True))
    cluster.stop(remove=False)
    start(cluster)
    for broker in cluster.status()[0].brokers:
        text = cluster.directory.files(broker).config.read_text()
        tiered = load_broker_config(text, file="config.toml").tiered
        places = {one.name: one.container for one in tiered.bucket_urls}
        assert places == {one: str(root / "buckets" / one) for one in ("east", "west")}


def test_a_tiered_cluster_checks_its_retention_every_few_seconds_unless_told_otherwise(
    tmp_path: Path, brokers: FakeBrokers
) -> None:
    def interval_ms(name: str) -> int:
        text = (tmp_path / name / "broker-1" / "config.toml").read_text()
        return load_broker_config(text, file="config.toml").storage.retention_check_interval_ms

    key = "storage.retention_check_interval_ms"
    start(open_cluster(tmp_path / "a", brokers), StartOptions(port_base=20_000, is_tiered=True))
    chosen = StartOptions(port_base=20_000, is_tiered=True, settings=(f"{key}=7000",))
    start(open_cluster(tmp_path / "b", brokers), chosen)
    later = open_cluster(tmp_path / "c", brokers)
    start(later, StartOptions(port_base=20_000, settings=(f"{key}=8000",)))
    later.stop(remove=False)
    start(later, StartOptions(is_tiered=True))
    assert [interval_ms(name) for name in "abc"] == [5_000, 7_000, 8_000]


def test_what_was_changed_by_hand_is_kept(tmp_path: Path, brokers: FakeBrokers) -> None:
    cluster = open_cluster(tmp_path, brokers)
    start(cluster)
    first, second = (tmp_path / f"broker-{one}" / "config.toml" for one in (1, 2))
    written = first.read_text()
    changed = "# mine\n" + written.replace("[broker.labels]", '[broker.labels]\nzone = "a"')
    first.write_text(changed)
    cluster.stop(remove=False)
    start(cluster)
    assert first.read_text() == changed
    plan, _ = cluster.status()
    assert [one.id for one in cluster.directory.edited(plan)] == [1]

    cluster.stop(remove=False)
    with pytest.raises(OperatorError, match=r"overwrite your edits in .*broker-1"):
        start(cluster, StartOptions(settings=("log.level=debug",)))
    assert first.read_text() == changed and "debug" not in second.read_text()
    assert cluster.status()[0] == plan
    first.unlink()
    start(cluster, StartOptions(settings=("log.level=debug",)))
    assert "debug" in first.read_text() and "debug" in second.read_text()
    assert cluster.directory.edited(cluster.status()[0]) == []


def test_a_broker_that_is_started_alone_has_a_missing_configuration_written_anew(
    tmp_path: Path, brokers: FakeBrokers
) -> None:
    cluster = open_cluster(tmp_path, brokers)
    start(cluster)
    first, second = (tmp_path / f"broker-{one}" / "config.toml" for one in (1, 2))
    written, changed = first.read_text(), "# mine\n" + second.read_text()
    cluster.kill_brokers(lambda plan: plan.brokers[:2])
    first.unlink()
    second.write_text(changed)
    assert cluster.start_brokers(lambda plan: plan.brokers[:2]) == [1, 2]
    assert (first.read_text(), second.read_text()) == (written, changed)


def test_a_cluster_that_was_moved_is_written_anew(tmp_path: Path, brokers: FakeBrokers) -> None:
    cluster = open_cluster(tmp_path / "here", brokers)
    start(cluster)
    cluster.stop(remove=False)
    (tmp_path / "here").rename(tmp_path / "there")
    moved = open_cluster(tmp_path / "there", brokers)
    start(moved)
    assert str(tmp_path / "there") in (tmp_path / "there/broker-1/config.toml").read_text()
    assert moved.directory.edited(moved.status()[0]) == []


@pytest.mark.parametrize(
    ("present", "other", "says"),
    [
        ("id = 2", "id = 9", r"\[cluster\] seeds: "),
        ("kafka_port = 20001", "kafka_port = 5", r"\[listener\] kafka_port is 5"),
        ("port = 20101", "port = 6", r"\[cluster\] seeds: "),
        ("/broker-2/data", "/broker-1/data", "broker.data_directory is "),
    ],
)
def test_a_configuration_that_is_another_brokers_is_one_line(
    tmp_path: Path, brokers: FakeBrokers, present: str, other: str, says: str
) -> None:
    cluster = open_cluster(tmp_path, brokers)
    start(cluster)
    cluster.stop(remove=False)
    file = tmp_path / "broker-2" / "config.toml"
    assert present in file.read_text()
    file.write_text(file.read_text().replace(present, other, 1))
    with pytest.raises(OperatorError, match=f"config.toml: {says}"):
        start(cluster)
    assert set(states(cluster).values()) == {"down"}


def test_files_of_an_earlier_version_count_as_written_where_they_are_as_they_would_be(
    tmp_path: Path, brokers: FakeBrokers
) -> None:
    cluster = open_cluster(tmp_path, brokers)
    start(cluster)
    cluster.stop(remove=False)
    for one in (1, 2, 3):
        (tmp_path / f"broker-{one}" / ".config.toml.written").unlink()
    plan, _ = cluster.status()
    assert cluster.directory.edited(plan) == []
    start(cluster, StartOptions(rtt="east-west=30"))
    assert "3=30" in (tmp_path / "broker-1" / "config.toml").read_text()


def test_a_port_taken_since_the_last_start_is_one_line(
    tmp_path: Path, brokers: FakeBrokers
) -> None:
    start(open_cluster(tmp_path, brokers))
    open_cluster(tmp_path, brokers).stop(remove=False)
    with pytest.raises(
        OperatorError,
        match="port 20001 of broker 2 is taken; see who has it: ss -tanp 'sport = :20001'",
    ):
        start(open_cluster(tmp_path, brokers, taken=frozenset({20_001})))


def test_a_broker_that_ends_while_starting_is_told_with_its_last_line_and_stops_the_others(
    tmp_path: Path, brokers: FakeBrokers
) -> None:
    brokers.fails[2] = "data_directory is in use"
    cluster = open_cluster(tmp_path, brokers)
    with pytest.raises(OperatorError) as caught:
        start(cluster)
    assert str(caught.value) == (
        "broker 2 exited while starting: error: data_directory is in use "
        f"(log: {tmp_path}/broker-2/broker.log)"
    )
    assert states(cluster) == {1: "down", 2: "down", 3: "down"}


def test_a_cluster_that_never_serves_is_given_up_and_stopped(
    tmp_path: Path, brokers: FakeBrokers
) -> None:
    brokers.cluster.controller = 9
    cluster = open_cluster(tmp_path, brokers)
    with pytest.raises(OperatorError, match="broker 1, 2, 3 did not serve within 2 s"):
        start(cluster)
    assert set(states(cluster).values()) == {"down"}


def test_a_broker_that_waits_for_others_is_left_running(
    tmp_path: Path, brokers: FakeBrokers
) -> None:
    cluster = open_cluster(tmp_path, brokers)
    start(cluster)
    cluster.kill_brokers(lambda plan: plan.brokers)
    brokers.cluster.controller = 9
    with pytest.raises(OperatorError, match=r"broker 2 did not serve within 2 s.* start more$"):
        cluster.start_brokers(lambda plan: (plan.broker(2),))
    assert states(cluster) == {1: "down", 2: "running", 3: "down"}
    with pytest.raises(OperatorError, match="broker 2 did not serve within 2 s"):
        cluster.start_brokers(lambda plan: (plan.broker(2),))
    assert states(cluster) == {1: "down", 2: "running", 3: "down"}
    brokers.cluster.controller = 1
    assert cluster.start_brokers(lambda plan: plan.brokers) == [1, 3]
    assert set(states(cluster).values()) == {"serving"}


def test_brokers_are_killed_started_paused_and_resumed(
    tmp_path: Path, brokers: FakeBrokers
) -> None:
    cluster = open_cluster(tmp_path, brokers)
    start(cluster)
    cluster.pause_broker(1)
    assert states(cluster)[1] == "paused"
    assert cluster.start_brokers(lambda plan: plan.brokers) == []
    cluster.resume_broker(1)
    assert states(cluster)[1] == "serving"
    assert cluster.kill_brokers(lambda plan: (plan.broker(1),)) == [1]
    assert cluster.kill_brokers(lambda plan: (plan.broker(1),)) == []
    with pytest.raises(OperatorError, match="broker 1 is down; to start it: strandline dev broker"):
        cluster.pause_broker(1)
    assert cluster.start_brokers(lambda plan: (plan.broker(1),)) == [1]
    assert cluster.start_brokers(lambda plan: (plan.broker(1),)) == []
    assert states(cluster)[1] == "serving"


def test_a_stop_ends_paused_brokers_too_and_can_remove_everything(
    tmp_path: Path, brokers: FakeBrokers
) -> None:
    cluster = open_cluster(tmp_path / "c", brokers)
    start(cluster)
    cluster.pause_broker(2)
    assert cluster.stop(remove=False) == []
    assert set(states(cluster).values()) == {"down"}
    cluster.stop(remove=True)
    assert not (tmp_path / "c").exists()


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path, brokers: FakeBrokers) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError, match="file/c: cannot open: Not a directory"):
        start(open_cluster(tmp_path / "file" / "c", brokers))


# ---- processes -----------------------------------------------------------------------------------


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as running:
        yield running
        running.kill()


def test_a_mark_is_of_this_very_process(process: subprocess.Popen[bytes]) -> None:
    mark = ProcessMark.of(process.pid)
    assert mark is not None and mark.state() is ProcessState.RUNNING
    for other in (
        replace(mark, started_ticks=mark.started_ticks - 1),
        replace(mark, boot_id="another"),
    ):
        assert other.state() is ProcessState.ABSENT
        assert not other.send(signal.SIGKILL)
    assert process.poll() is None


def test_a_process_that_ended_is_absent_even_while_it_is_a_zombie(
    process: subprocess.Popen[bytes],
) -> None:
    mark = ProcessMark.of(process.pid)
    assert mark is not None
    kill_processes([mark])
    assert wait_gone([mark], timeout_ms=0) == []
    assert ProcessMark.of(process.pid) is None
    process.wait()
    assert mark.state() is ProcessState.ABSENT
    assert not mark.send(signal.SIGTERM)


def test_a_process_that_does_not_end_by_itself_is_killed_after_the_grace() -> None:
    code = "import signal,sys;signal.signal(15,signal.SIG_IGN);print(1,flush=True);signal.pause()"
    with subprocess.Popen(["python3", "-c", code], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        mark = ProcessMark.of(running.pid)
        assert mark is not None
        assert stop_processes([mark], grace_ms=20) == [mark]
        assert running.wait() == -signal.SIGKILL


def test_marks_survive_their_file(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    path = tmp_path / "broker.pid"
    assert live_mark(path) is None
    mark = ProcessMark.of(process.pid)
    assert mark is not None
    write_mark(path, mark)
    assert live_mark(path) == mark
    assert json.loads(path.read_text())["pid"] == process.pid
    for damaged in ("", "7", "{}", '{"pid": "x"}'):
        path.write_text(damaged)
        assert read_mark(path) is None


def test_this_process_is_running() -> None:
    mark = ProcessMark.of(os.getpid())
    assert mark is not None and mark.state() is ProcessState.RUNNING


def test_the_last_line_of_a_log_is_from_this_start(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    assert last_line(log, since=0) == ""
    log.write_text("old\n")
    assert last_line(log, since=4) == ""
    log.write_text("old\nnew\nnewest\n\n")
    assert last_line(log, since=4) == "newest"
    log.write_text("x" * 10_000)
    assert len(last_line(log, since=0)) == 500
