"""The faults of access: a seed stands for them, files follow them, and a leak is found."""

import ssl
import subprocess
from pathlib import Path

import pytest
from chaos.access.commands import Commands
from chaos.access.files import SecureFiles
from chaos.access.plan import ROTATED, AccessFault, AccessKind, draw_access
from chaos.access.promises import judge_impostors, judge_probes, judge_rules
from chaos.brokers import render_config
from chaos.clients.ruled_producer import Writer
from chaos.clients.security import (
    PasswordWatch,
    aiokafka,
    is_refused_login,
    kafka_python,
    librdkafka,
)
from chaos.hosts import BROKERS, CLIENTS, ChaosError, Host
from chaos.ledger import Client, Leaked, LedgerReader, LedgerWriter, Probed
from chaos.promises import Judge
from confluent_kafka import KafkaError

from chaos import processes
from strandline.config.load import load_broker_config
from strandline.security.certificates import der_of, uri_names

TEN_MINUTES_MS = 600_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> SecureFiles:
    return SecureFiles(tmp_path_factory.mktemp("run"))


def is_trusted(files: SecureFiles, certificate: Path) -> bool:
    """Whether brokers accept a certificate by the present file of trust."""
    command = ["openssl", "verify", "-CAfile", str(files.peers_trust), str(certificate)]
    return subprocess.run(command, capture_output=True).returncode == 0


def test_the_same_seed_gives_the_same_faults_one_after_the_other() -> None:
    faults = draw_access(7, duration_ms=TEN_MINUTES_MS)
    assert faults == draw_access(7, duration_ms=TEN_MINUTES_MS)
    assert faults != draw_access(8, duration_ms=TEN_MINUTES_MS)
    assert {fault.kind for fault in faults} == set(AccessKind)
    ends = [0, *(fault.end_ms for fault in faults)]
    assert all(end < fault.begin_ms for end, fault in zip(ends, faults, strict=False))
    assert all(fault.user in ROTATED for fault in faults if fault.kind is AccessKind.PASSWORD)


def test_an_authority_is_rotated_without_a_moment_of_distrust(files: SecureFiles) -> None:
    present, old = files.directory / "peer" / "1.pem", files.directory / "old.pem"
    old.write_bytes(present.read_bytes())
    assert is_trusted(files, old)
    files.trust_both()
    files.move_to_next()
    assert present.read_bytes() != old.read_bytes()
    assert is_trusted(files, old) and is_trusted(files, present)
    files.trust_present()
    assert is_trusted(files, present) and not is_trusted(files, old)


def test_a_certificate_and_its_key_change_at_one_moment(files: SecureFiles) -> None:
    """A broker that starts between two renames would find a key of another certificate."""
    for directory in ("listener", "peer"):
        path = files.directory / directory / "1.pem"
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path, path)
        assert not path.with_suffix(".key").exists()


def test_an_impostor_is_of_no_authority_that_brokers_trust(files: SecureFiles) -> None:
    forged = files.forge(3)
    assert not is_trusted(files, forged)
    assert uri_names(der_of(forged)) == ("strandline://chaos/broker/3",)


def test_a_broker_of_a_secure_run_has_no_open_port(files: SecureFiles, tmp_path: Path) -> None:
    text = render_config(BROKERS[0], tmp_path, preallocates=True, secure=files)
    assert "insecure" not in text
    assert 'protocol = "SASL_SSL"' in text
    assert 'tls = "require"' in text
    assert "enforce_rules = true" in text
    assert load_broker_config(text, file="broker.toml").broker.id == 1


def test_each_library_gets_the_same_login(files: SecureFiles) -> None:
    config = files.client("admin")
    password = files.password_file("admin").read_text().strip()
    assert librdkafka(config)["sasl.password"] == password
    assert "bootstrap.servers" not in librdkafka(config)
    assert kafka_python(config)["sasl_plain_password"] == password
    assert isinstance(aiokafka(config)["ssl_context"], ssl.SSLContext)
    assert librdkafka(None) == kafka_python(None) == aiokafka(None) == {}


@pytest.mark.parametrize(
    ("code", "words", "is_refused"),
    [
        (KafkaError._AUTHENTICATION, "SaslAuthenticateRequest failed: Local: Timed out", False),
        (KafkaError._AUTHENTICATION, "failed: Local: Broker transport failure (after 0ms)", False),
        (KafkaError._AUTHENTICATION, "SASL authentication error: Authentication failed", True),
        (KafkaError._TRANSPORT, "Local: Broker transport failure", False),
    ],
)
def test_a_login_whose_connection_ends_is_not_a_refused_one(
    code: int, words: str, is_refused: bool
) -> None:
    assert is_refused_login(KafkaError(code, words)) is is_refused


def test_a_writer_asks_again_for_a_leader_that_it_did_not_find() -> None:
    class Asking(Writer):
        def __init__(self) -> None:
            self.asked_count = 0
            self._leaders = {("a", 0): 1}

        def _ask(self, host: Host) -> None:
            self.asked_count += 1
            self._leaders = {("a", 0): 1, ("a", 1): 2}

    writer = Asking()
    assert (writer._leader("a", 0), writer.asked_count) == (1, 0)
    assert (writer._leader("a", 1), writer.asked_count) == (2, 1)


def test_a_client_takes_a_new_password_once(files: SecureFiles) -> None:
    taken: list[tuple[str, str]] = []
    watch = PasswordWatch(files.client("admin"), lambda *login: taken.append(login))
    watch.look()
    assert taken == []
    new = files.draw_password("admin").read_text().strip()
    watch.look()
    assert taken == [], "the cluster does not know it yet"
    files.write_client("admin")
    watch.look()
    watch.look()
    assert taken == [("admin", new)]


class Shell(Commands):
    """Commands of a shell."""

    def __init__(self, log: Path) -> None:
        super().__init__(None, CLIENTS[0], Path("none"), log)  # type: ignore[arg-type]

    def _start(self, command) -> processes.Process:  # type: ignore[no-untyped-def]
        return processes.start(["sh", "-c", command.arguments[0]], log=self._log)


def test_a_command_is_run_until_it_succeeds_before_the_next(tmp_path: Path) -> None:
    shell, done = Shell(tmp_path / "log"), []
    marker = tmp_path / "marker"
    shell.add(f"test -e {marker} || {{ touch {marker}; false; }}", then=lambda: done.append(1))
    shell.add("true", then=lambda: done.append(2))
    shell.finish(30)
    assert done == [1, 2]
    assert (shell.done_count, shell.failed_count) == (2, 1)


def test_a_command_that_never_succeeds_ends_the_run(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "log")
    shell.add("false")
    with pytest.raises(ChaosError, match="no success within 0 s: false"):
        shell.finish(0.2)
    shell.end()


def reader_of(path: Path, *entries: Probed | Leaked) -> LedgerReader:
    writer = LedgerWriter(path / "probe.jsonl", Client("probe-east"))
    for entry in entries:
        writer.add(entry)
    writer.close()
    reader = LedgerReader(path / "probe.jsonl")
    reader.read_on()
    return reader


def test_probes_that_were_refused_are_counted(tmp_path: Path) -> None:
    judge = Judge([])
    probes = [Probed(1, "stranger", 1, "refused"), Probed(2, "stranger", 2, "out of reach")]
    assert judge_probes([reader_of(tmp_path, *probes)], judge) == {"stranger": 1}
    assert judge.breaches == {}


def test_a_leak_breaks_a_promise(tmp_path: Path) -> None:
    judge = Judge([])
    judge_probes([reader_of(tmp_path, Leaked(1, "stranger", 4, "orders-0: error 0"))], judge)
    assert judge.breaches == {
        "NoAnswerWithoutRight": "probe-east asked broker 4 as stranger: orders-0: error 0"
    }


def test_a_right_that_was_taken_away_has_to_be_missed() -> None:
    faults = [AccessFault(n, n + 1, AccessKind.RULE) for n in range(3)]
    judge = Judge([])
    judge_rules(faults, 1, judge)
    assert judge.breaches == {}
    judge_rules(faults, 0, judge)
    assert set(judge.breaches) == {"TakenRightCounts"}


def test_an_impostor_that_serves_breaks_a_promise(tmp_path: Path) -> None:
    judge, log = Judge([]), tmp_path / "broker.log"
    log.write_text('event="waits for the cluster"\n')
    judge_impostors([tmp_path], judge)
    assert judge.breaches == {}
    log.write_text('event="broker 9 serves Kafka clients on 127.0.0.1:23092"\n')
    judge_impostors([tmp_path], judge)
    assert set(judge.breaches) == {"ImpostorStaysOut"}
