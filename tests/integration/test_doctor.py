"""`strandline doctor security` of real brokers: what is open there is named, and nothing else.

Source: docs/operating/security.md, "What is open"."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import COMMAND, COMMAND_TIMEOUT_S
from tests.integration.secure_cluster import SecureCluster, plain_listener, secure_cluster

pytestmark = pytest.mark.integration

PASSWORD = "correct horse battery"


def doctor(*arguments: str) -> tuple[int, set[tuple[str, str]]]:
    """The exit code, and (level, key) of each finding."""
    done = subprocess.run(
        [COMMAND, "doctor", "security", "--json", *arguments],
        capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S,
    )  # fmt: skip
    return done.returncode, {(one["level"], one["key"]) for one in json.loads(done.stdout)}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SecureCluster]:
    """A broker with a listener for logins and one without any."""
    with secure_cluster(tmp_path, listeners=2) as cluster:
        files = cluster.authority.issue("broker-1")
        (tmp_path / "password").write_text(PASSWORD)
        users = tmp_path / "users.jsonl"
        subprocess.run(
            [COMMAND, "user", "create", "admin", "--file", str(users), "--password-file",
             str(tmp_path / "password"), "--mechanism", "SCRAM-SHA-512"],
            check=True, capture_output=True, timeout=COMMAND_TIMEOUT_S,
        )  # fmt: skip
        broker = cluster.brokers[1]
        broker.sections = "".join(
            (
                plain_listener("OPEN", broker.ports[0]),
                f'[[listener]]\nname = "LOGIN"\nbind = "127.0.0.1:{broker.ports[1]}"\n'
                f'protocol = "SASL_SSL"\ncertificate = "{files.certificate}"\n'
                f'private_key = "{files.key}"\n',
                f'[access]\nenforce_rules = true\nsuper_users = ["User:admin"]\n'
                f'users_file = "{users}"\n',
            )
        )
        (tmp_path / "admin.conf").write_text(
            f"bootstrap.servers=127.0.0.1:{broker.ports[1]}\nsecurity.protocol=SASL_SSL\n"
            f"ssl.ca.location={files.trust}\nsasl.mechanism=SCRAM-SHA-512\n"
            f"sasl.username=admin\nsasl.password={PASSWORD}\n"
        )
        cluster.start()
        yield cluster


def test_a_rule_for_strangers_is_open_until_it_is_removed(
    cluster: SecureCluster, tmp_path: Path
) -> None:
    own = ("--client-config", str(tmp_path / "admin.conf"))
    code, found = doctor(*own)
    assert code == 0
    # The listener without a login is served, and shows nothing.
    assert {("weak", "login"), ("weak", "[[listener]] OPEN bind"), ("weak", "[rpc] tls")} <= found
    assert ("note", "quota") in found
    for command in (
        ("topic", "create", "news", "-p", "1", "-r", "1"),
        ("acl", "create", "--allow-principal", "User:ANONYMOUS", "--operation", "read",
         "--topic", "news"),
        ("quota", "set", "request_percentage=50", "--default-user"),
    ):  # fmt: skip
        subprocess.run(
            [COMMAND, *command, *own], check=True, capture_output=True, timeout=COMMAND_TIMEOUT_S
        )
    code, found = doctor(*own)
    assert code == 1
    assert {("open", "login"), ("open", "acl")} <= found and ("note", "quota") not in found
    # The stranger itself finds out the same of its own rights, and sees no rules.
    code, found = doctor("-b", cluster.bootstrap(0))
    assert code == 1
    assert ("open", "login") in found and not any(key == "acl" for _, key in found)


def test_a_port_with_logins_shows_a_stranger_nothing(cluster: SecureCluster) -> None:
    code, found = doctor("-b", cluster.bootstrap(1))
    assert (code, found) == (0, {("note", "--client-config")})


def test_the_file_of_a_running_broker_has_its_open_port(cluster: SecureCluster) -> None:
    code, found = doctor("--config", str(cluster.brokers[1].directory / "broker.toml"))
    assert code in (0, 1)
    assert ("weak", "[[listener]] OPEN bind") in found
    assert ("weak", "[access] audit_file") in found
