"""`strandline dev start --secure`: one command, and every client has the one line that it needs.

Source: docs/operating/security.md; decision 0069."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.integration.conftest import COMMAND, start_cluster, stop_cluster, wait_until
from tests.integration.ports import free_ports

pytestmark = pytest.mark.integration
TIMEOUT_S = 30
MORE = AclBinding(
    ResourceType.BROKER,
    "kafka-cluster",
    ResourcePatternType.LITERAL,
    "User:app",
    "*",
    AclOperation.ALL,
    AclPermissionType.ALLOW,
)


def run(*words: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"STRANDLINE_DEV_DIR": str(directory)},
    )


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("secure") / "cluster"
    http = f"metrics.port={free_ports(1)[0]}"
    cluster = start_cluster(directory, regions="east=1,west=1", options=("--secure", "--set", http))
    yield directory
    stop_cluster(cluster)


def settings(directory: Path, user: str) -> dict[str, str]:
    """What `kcat -F FILE` reads."""
    lines = (directory / "secure" / f"{user}.conf").read_text().splitlines()
    return dict(one.split("=", 1) for one in lines)


def test_app_uses_topics_and_groups_and_no_more(secure: Path) -> None:
    mine = settings(secure, "app")
    admin = AdminClient(mine)
    for future in admin.create_topics([NewTopic("orders", 1, 2)]).values():
        future.result(TIMEOUT_S)
    producer = Producer(mine)
    producer.produce("orders", b"one")
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({**mine, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    found = None
    while found is None:
        found = consumer.poll(1)
    consumer.close()
    assert found.value() == b"one"
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        for future in admin.create_acls([MORE]).values():
            future.result(TIMEOUT_S)


@pytest.mark.skipif(shutil.which("kcat") is None, reason="needs Debian's kcat (2026-11-30)")
def test_kcat_of_debian_logs_in_with_the_printed_file(secure: Path) -> None:
    """It has librdkafka 2.0, which finds out otherwise whether brokers take logins, and writes its
    nonce twice."""
    file = str(secure / "secure" / "app.conf")
    words = ["kcat", "-F", file, "-L", "-m", str(TIMEOUT_S)]
    listed = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert listed.returncode == 0, listed.stderr
    assert "2 brokers" in listed.stdout


def test_commands_of_this_machine_are_the_administrator(secure: Path) -> None:
    rules = json.loads(run("acl", "list", "--json", directory=secure).stdout)
    assert {(one["principal"], one["resource_type"]) for one in rules} == {
        ("User:app", "topic"),
        ("User:app", "group"),
    }
    wait_until(
        lambda: run("cluster", "status", "--json", directory=secure).returncode == 0,
        what="a cluster that is well",
    )


def test_commands_of_app_create_list_and_describe_its_topics(secure: Path) -> None:
    login = ("--client-config", str(secure / "secure" / "app.conf"))
    for words in (("create", "mine", "-p", "2"), ("list",), ("describe", "mine")):
        done = run("topic", *words, *login, directory=secure)
        assert done.returncode == 0 and "mine" in done.stdout, done.stderr


def test_secrets_are_for_their_owner_alone(secure: Path) -> None:
    files = secure / "secure"
    assert files.stat().st_mode & 0o077 == 0
    for one in files.iterdir():
        assert one.suffix == ".pem" or one.stat().st_mode & 0o077 == 0, one
    password = settings(secure, "app")["sasl.password"]
    logs = "".join(one.read_text() for one in secure.glob("broker-*/broker.log"))
    assert password not in logs and logs


def test_a_client_without_a_login_or_with_another_authority_gets_nowhere(
    secure: Path, tmp_path: Path
) -> None:
    mine = settings(secure, "app")
    plain = {"bootstrap.servers": mine["bootstrap.servers"], "log_level": "0"}
    for other in (
        plain,
        {**mine, "log_level": "0", "ssl.ca.location": "/etc/ssl/certs/ca-certificates.crt"},
    ):
        with pytest.raises(KafkaException):
            AdminClient(other).list_topics(timeout=2)


def test_the_cluster_starts_again_with_the_same_passwords(secure: Path) -> None:
    before = settings(secure, "app")
    assert run("dev", "stop", directory=secure).returncode == 0
    again = run("dev", "start", directory=secure)
    assert again.returncode == 0, again.stderr
    assert f"kcat -F {secure / 'secure' / 'app.conf'} -L" in again.stdout
    assert settings(secure, "app") == before
    admin = AdminClient(before)
    wait_until(
        lambda: "orders" in admin.list_topics(timeout=TIMEOUT_S).topics, what="the topic of before"
    )
    (typed,) = (one for one in again.stdout.splitlines() if one.startswith("metrics "))
    scraped = subprocess.run(
        ["bash", "-c", typed.removeprefix("metrics")], capture_output=True, text=True, timeout=60
    )
    assert "strandline_broker_ready" in scraped.stdout, scraped.stderr
    without = typed.removeprefix("metrics").replace("-u", "-s -w '%{http_code}' -H")
    refused = subprocess.run(["bash", "-c", without], capture_output=True, text=True, timeout=60)
    assert refused.stdout.endswith("401"), refused.stdout
    (line,) = (one for one in again.stdout.splitlines() if one.startswith("console "))
    assert f"the password is in {secure / 'secure' / 'http.token'}" in line
    assert run("dev", "status", directory=secure).returncode == 0
