"""A broker that cannot start says why in exactly one line, and ends with exit code 1.

Source: reliability reference; STYLE, "Errors" (one line that says what to do)."""

import ctypes
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import COMMAND, DevCluster, wait_until
from tests.integration.ports import free_ports

from strandline.cli.server.serve import serve_file

pytestmark = pytest.mark.integration

END_TIMEOUT_S = 60
PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2


class Configuration:
    """A broker's file, which is sound until a test changes it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "broker.toml"
        self.data = directory / "data"
        self.kafka_port, self.rpc_port = free_ports(2)
        self.text = f"""
[broker]
id = 1
data_directory = "{self.data}"
[cluster]
id = "ours"
seeds = ["1@127.0.0.1:{self.rpc_port}"]
[listener]
kafka_host = "127.0.0.1"
kafka_port = {self.kafka_port}
[rpc]
host = "127.0.0.1"
port = {self.rpc_port}
"""
        self.write()

    def write(self) -> None:
        self.path.write_text(self.text)

    def change(self, old: str, new: str) -> None:
        assert old in self.text
        self.text = self.text.replace(old, new)
        self.write()


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    return Configuration(tmp_path)


def refusal(path: Path | str, *, prepare: Callable[[], None] | None = None, **env: str) -> str:
    """The one line with which `strandline serve` ends."""
    done = subprocess.run(
        [COMMAND, "serve", "--config", str(path)],
        capture_output=True,
        text=True,
        timeout=END_TIMEOUT_S,
        env={**os.environ, **env},
        preexec_fn=prepare,
    )
    assert done.stdout == ""
    assert done.returncode == 1, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    assert len(lines[0]) < 400
    return lines[0]


# The configuration.


def test_a_misspelt_key_is_named_with_the_one_that_was_meant(configuration: Configuration) -> None:
    configuration.change("kafka_port", "kafka_prot")
    line = refusal(configuration.path)
    assert f"{configuration.path}: [listener] kafka_prot: unknown key" in line
    assert "did you mean kafka_port?" in line


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("id = 1\n", 'id = "one"\n', r"\[broker\] id: must be a whole number, not 'one'"),
        ("id = 1\n", "id = -1\n", r"\[broker\] id: must be"),
        ("id = 1\n", "", r"\[broker\] id: is missing; give for example id = 1"),
        (
            "kafka_port = ",
            "kafka_port = 9999999 # ",
            r"\[listener\] kafka_port: must be 1 to",
        ),
        ("seeds = [", "seeds = 7 # [", r"\[cluster\] seeds: must be a list of strings"),
        ("[broker]", "[broker", r"is not TOML: .*line 2"),
        ("[rpc]", '[log]\nlevel = "loud"\n[rpc]', r"\[log\] level: must be"),
        ("[rpc]", "[rcp]", r"\[rcp\]: unknown section \(did you mean rpc\?\)"),
        ("[rpc]", "[metrics]\nport = 70000\n[rpc]", r"\[metrics\] port: must be 0 to 65535"),
        ("[rpc]", "[metrics]\nlisteners = 1\n[rpc]", r"\[metrics\] listeners: unknown key.*"),
        ("[rpc]", '[metrics]\nhost = "a b"\n[rpc]', r"\[metrics\] host: must be a host name.*"),
        ("[rpc]", '[log]\nfile = "/"\n[rpc]', r"\[log\] file: cannot append to /: Is a directory"),
    ],
)
def test_a_bad_value_is_named_with_its_place(
    configuration: Configuration,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    reason: str,
) -> None:
    configuration.change(old, new)
    assert serve_file(configuration.path, environment={}) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(rf"error: ({re.escape(str(configuration.path))}: )?{reason}.*\n", said.err)


def test_a_file_that_cannot_be_read_is_named(configuration: Configuration, tmp_path: Path) -> None:
    configuration.path.chmod(0)
    line = refusal(configuration.path, prepare=give_up_privileges)
    assert f"{configuration.path}: cannot read: Permission denied" in line
    assert "nowhere.toml: cannot read: No such file" in refusal(tmp_path / "nowhere.toml")


def give_up_privileges() -> None:
    """Also for root, a file without permissions is closed from now on."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            assert libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0


# Ports.


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_in_use_is_noticed_before_the_cluster_hears_of_the_broker(
    configuration: Configuration, taken: int
) -> None:
    configuration.change(str(configuration.kafka_port), str(taken))
    line = refusal(configuration.path)
    assert f"[listener] kafka_port: cannot listen on 127.0.0.1:{taken}: Address already" in line
    assert not (configuration.data / "logs").exists()


def test_an_rpc_port_in_use_is_named(configuration: Configuration, taken: int) -> None:
    configuration.change(str(configuration.rpc_port), str(taken))
    line = refusal(configuration.path)
    assert f"[rpc] port: cannot listen on 127.0.0.1:{taken}: Address already in use" in line


def test_a_port_for_metrics_in_use_is_noticed_before_the_cluster_hears_of_the_broker(
    configuration: Configuration, taken: int
) -> None:
    configuration.change("[rpc]", f"[metrics]\nport = {taken}\n[rpc]")
    line = refusal(configuration.path)
    assert f"[metrics] port: cannot listen on 127.0.0.1:{taken}: Address already in use" in line
    assert not (configuration.data / "logs").exists()


def test_a_port_for_metrics_that_is_another_ones_is_refused(configuration: Configuration) -> None:
    configuration.change("[rpc]", f"[metrics]\nport = {configuration.kafka_port}\n[rpc]")
    line = refusal(configuration.path)
    assert "[metrics] port: must differ from [listener] kafka_port" in line


def test_a_host_that_is_not_this_machines_is_named(configuration: Configuration) -> None:
    configuration.change(
        '\nhost = "127.0.0.1"',
        '\nhost = "no.such.host.invalid"\nadvertised_host = "127.0.0.1"',
    )
    configuration.change("[cluster]", "[security]\ninsecure = true\n[cluster]")
    assert "[rpc] port: cannot listen on no.such.host.invalid" in refusal(configuration.path)


# The data directory.


def test_a_data_directory_that_is_a_file_is_named(configuration: Configuration) -> None:
    configuration.data.write_text("not a directory")
    assert f"data_directory {configuration.data} cannot be used" in refusal(configuration.path)


def test_a_data_directory_that_cannot_be_written_is_named(configuration: Configuration) -> None:
    configuration.data.mkdir(mode=0o500)
    line = refusal(configuration.path, prepare=give_up_privileges)
    assert f"data_directory {configuration.data} cannot be used: Permission denied" in line


def test_a_data_directory_in_use_is_left_alone(
    configuration: Configuration, cluster: DevCluster
) -> None:
    theirs = str(cluster.brokers[1]["data_directory"])
    configuration.change(str(configuration.data), theirs)
    line = refusal(configuration.path)
    assert f"data_directory {theirs} is in use by another process" in line


def test_another_brokers_or_clusters_data_directory_is_left_alone(
    configuration: Configuration,
) -> None:
    run_once(configuration)
    configuration.change('id = "ours"', 'id = "another"')
    line = refusal(configuration.path)
    assert f"data_directory {configuration.data} belongs to cluster ours, not another" in line
    configuration.change('id = "another"', 'id = "ours"')
    configuration.change("id = 1\n", "id = 2\n")
    configuration.change('"1@', '"2@')
    line = refusal(configuration.path)
    assert f"data_directory {configuration.data} belongs to broker 1, not 2" in line


def test_a_damaged_journal_of_votes_is_named(configuration: Configuration) -> None:
    run_once(configuration)
    journal = configuration.data / "state.journal"
    journal.write_bytes(b"\xff" * 10 + journal.read_bytes()[10:])
    assert str(journal) in refusal(configuration.path)


def run_once(configuration: Configuration) -> None:
    """Let the broker make its data directory, and stop it in order."""
    running = subprocess.Popen(
        [COMMAND, "serve", "--config", str(configuration.path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert running.stderr is not None
    try:
        wait_until(lambda: serves(configuration.kafka_port), what="the broker serves")
        running.terminate()
        running.stderr.read()
        assert running.wait(END_TIMEOUT_S) == 0
    finally:
        running.kill()
        running.wait()
        running.stderr.close()


def serves(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
