"""The pages of security are typed: the secure cluster of one command, users and rules.

Source: docs/operating/security.md."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import COMMAND, COMMAND_TIMEOUT_S
from tests.integration.pages import security_section
from tests.integration.ports import port_base
from tests.integration.secure_cluster import SecureBroker, SecureCluster, plain_listener, wait
from tests.integration.secure_cluster import secure_cluster as made_cluster
from tests.integration.walk import agrees

pytestmark = pytest.mark.integration

TIMEOUT_S = 60
PLACE = "/etc/strandline"


def steps(heading: str) -> Iterator[tuple[str, str]]:
    """(kind, text) of each block of a section: empty for commands, text for what they print."""
    for block in security_section(heading).split("```")[1::2]:
        kind, _, text = block.partition("\n")
        yield kind, text


def typed(line: str, directory: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """One line in a shell."""
    known = {key: value for key, value in os.environ.items() if not key.startswith("STRANDLINE")}
    command = line.replace("strandline ", f"{COMMAND} ", 1) if "| " not in line else line
    return subprocess.run(
        ["bash", "-c", " ".join((command.replace("| strandline", f"| {COMMAND}"), *more))],
        cwd=directory, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S,
        env=known | {"STRANDLINE_DEV_DIR": str(directory / "strandline-dev")},
    )  # fmt: skip


def walk(heading: str, directory: Path) -> Iterator[tuple[str, str]]:
    """Type the commands of a section in their order, compare what they print, and yield the
    other blocks."""
    last: subprocess.CompletedProcess[str] | None = None
    for kind, text in steps(heading):
        if kind == "text":
            assert last is not None
            told = last.stdout + last.stderr
            assert agrees(told, tuple(text.splitlines())), told
            last = None
        elif kind:
            yield kind, text
        else:
            assert last is None or last.returncode == 0, last.stderr
            for line in text.splitlines():
                assert last is None or last.returncode == 0, last.stderr
                start = "dev start" in line
                last = typed(line, directory, *(("--port-base", port_base()) if start else ()))
    assert last is None or last.returncode == 0, last.stderr


def test_one_command_makes_a_secure_cluster_to_try(tmp_path: Path) -> None:
    try:
        assert not list(walk("Try it", tmp_path))
        assert not list(walk("What is open", tmp_path))
    finally:
        assert typed("strandline dev stop", tmp_path).returncode == 0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SecureCluster]:
    """Two brokers with certificates that the page's listener names, and the passwords' files."""
    (tmp_path / "admin.password").write_text("correct horse\n")
    (tmp_path / "mia.password").write_text("battery staple\n")
    with made_cluster(tmp_path / "cluster", count=2, listeners=2) as cluster:
        files = cluster.authority.issue("broker-1")
        for source, name in (
            (files.certificate, "broker-1.pem"),
            (files.key, "broker-1.key"),
            (files.trust, "ca.pem"),
        ):
            (tmp_path / name).symlink_to(source)
        yield cluster


def login(broker: SecureBroker, toml: str, directory: Path) -> str:
    """The page's sections, for a broker of this test."""
    return (
        toml.replace(PLACE, str(directory))
        .replace("0.0.0.0:9094", f"0.0.0.0:{broker.ports[1]}")
        .replace("broker-1.example:9094", f"127.0.0.1:{broker.ports[1]}")
    )


def admin_conf(text: str, cluster: SecureCluster, directory: Path) -> None:
    """The page's file for commands."""
    (directory / "admin.conf").write_text(
        text.replace(PLACE, str(directory))
        .replace("broker-1.example:9094", cluster.bootstrap(1))
        .replace("PASSWORD", "correct horse")
    )


def mia(cluster: SecureCluster, directory: Path) -> AdminClient:
    """A client that logs in as the page's second user."""
    return AdminClient(
        {
            "bootstrap.servers": cluster.bootstrap(1),
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(directory / "ca.pem"),
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "mia",
            "sasl.password": "battery staple",
            "log_level": 0,
        }
    )


def create(client: AdminClient, topic: str) -> None:
    for future in client.create_topics([NewTopic(topic, 1, 1)]).values():
        future.result(TIMEOUT_S)


def test_the_first_user_makes_others_and_their_rules(
    cluster: SecureCluster, tmp_path: Path
) -> None:
    for kind, text in walk("Users", tmp_path):
        if kind == "toml":
            for broker in cluster.brokers.values():
                broker.sections = login(broker, text, tmp_path)
            cluster.start()
        else:
            admin_conf(text, cluster, tmp_path)
    client = mia(cluster, tmp_path)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        create(client, "orders-1")
    assert [kind for kind, _ in steps("Rules")] == ["", "text", ""]
    assert not list(walk("Rules", tmp_path))
    assert [kind for kind, _ in steps("Quotas")] == ["", "text", ""]
    assert not list(walk("Quotas", tmp_path))


def test_a_cluster_with_open_ports_goes_to_rules_as_the_page_says(
    cluster: SecureCluster, tmp_path: Path
) -> None:
    blocks = list(steps("Users"))
    (toml,) = (text for kind, text in blocks if kind == "toml")
    (conf,) = (text for kind, text in blocks if kind == "properties")
    made = typed(blocks[0][1].strip(), tmp_path)
    assert made.returncode == 0, made.stderr
    admin_conf(conf, cluster, tmp_path)
    enforced = "enforce_rules = true"
    for broker in cluster.brokers.values():
        own = plain_listener("PLAINTEXT", broker.ports[0])
        broker.sections = own + login(broker, toml.replace(enforced, ""), tmp_path)
    cluster.start()
    open_client = AdminClient({"bootstrap.servers": cluster.bootstrap(0), "log_level": 0})
    create(open_client, "orders")
    refused = typed("strandline acl list --client-config admin.conf", tmp_path)
    assert "no authoriser is configured" in refused.stderr
    restart(cluster, "[access]", "[access]\nallow_without_rules = true\n" + enforced)
    create(open_client, "orders-2")
    (close,) = (
        line.strip()
        for line in security_section("From open to closed, while it runs").splitlines()
        if line.strip().startswith("strandline ")
    )
    closed = typed(close, tmp_path)
    assert closed.returncode == 0, closed.stderr
    by_everyone = f"strandline acl list -b {cluster.bootstrap(0)}"
    wait(
        lambda: "CLUSTER_AUTHORIZATION_FAILED" in typed(by_everyone, tmp_path).stderr,
        lambda: "everyone may still read the rules",
    )
    create(open_client, "orders-3")
    restart(cluster, "allow_without_rules = true", "")
    assert "orders" not in open_client.list_topics(timeout=TIMEOUT_S).topics
    shown = typed("strandline topic list --client-config admin.conf", tmp_path)
    assert "orders-3" in shown.stdout, shown.stderr


def restart(cluster: SecureCluster, old: str, new: str) -> None:
    """Give each broker another file, one after the other."""
    for broker in cluster.brokers.values():
        served = broker.log.count("serves Kafka clients on")
        assert old in broker.sections
        broker.sections = broker.sections.replace(old, new)
        broker.stop()
        broker.start(cluster.seeds)
        wanted = served + broker.listener_count
        broker.wait_logged("serves Kafka clients on", count=wanted)
