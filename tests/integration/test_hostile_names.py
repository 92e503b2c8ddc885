"""Names that clients choose run nothing in a browser, steer no terminal and forge no line.

Source: decision 0069; docs/operating/security-rules.md, "Audit log"."""

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.integration.conftest import COMMAND, COMMAND_TIMEOUT_S
from tests.integration.ports import free_ports
from tests.integration.secure_cluster import SecureCluster, plain_listener, secure_cluster, wait

pytestmark = pytest.mark.integration

MARKUP = "</title></script><img src=x onerror=\"document.title='owned'\">"
STEERING = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\u2066\nlevel=error event=forged\r\u2028x\x85"
HOSTILE = MARKUP + STEERING
UNSHOWN = frozenset("\x1b\x07\x9b\u202e\u2066\r\u2028\x85")
TIMEOUT_S = 30


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureCluster]:
    """A broker whose only user may do everything, and what clients have named there."""
    directory = tmp_path_factory.mktemp("hostile")
    with secure_cluster(directory) as cluster:
        broker = cluster.brokers[1]
        (port,) = free_ports(1)
        broker.sections = (
            plain_listener("PLAINTEXT", broker.ports[0])
            + f"[metrics]\nport = {port}\n"
            + '[access]\nenforce_rules = true\nsuper_users = ["User:ANONYMOUS"]\n'
            + f'audit_file = "{directory / "audit.jsonl"}"\n'
        )
        broker.ports.append(port)
        cluster.start()
        name_everything(cluster)
        yield cluster


def name_everything(cluster: SecureCluster) -> None:
    """A group, a member, a client, a principal and a topic that there is not."""
    options = {
        "bootstrap.servers": f"127.0.0.1:{cluster.brokers[1].ports[0]}",
        "client.id": HOSTILE,
    }
    admin = AdminClient(options)
    admin.create_topics([NewTopic("plain", 1, 1)])["plain"].result(TIMEOUT_S)
    with pytest.raises(KafkaException):
        admin.create_topics([NewTopic(MARKUP, 1, 1)])[MARKUP].result(TIMEOUT_S)
    rule = AclBinding(
        ResourceType.TOPIC, HOSTILE, ResourcePatternType.LITERAL, f"User:{HOSTILE}", "*",
        AclOperation.READ, AclPermissionType.ALLOW,
    )  # fmt: skip
    admin.create_acls([rule])[rule].result(TIMEOUT_S)
    consumer = Consumer(options | {"group.id": HOSTILE, "auto.offset.reset": "earliest"})
    consumer.subscribe(["plain"])
    wait(lambda: bool(consumer.poll(0.2) or consumer.assignment()), lambda: "no assignment")
    consumer.close()


def command(cluster: SecureCluster, *arguments: str) -> str:
    done = subprocess.run(
        [COMMAND, *arguments, "--bootstrap", f"127.0.0.1:{cluster.brokers[1].ports[0]}"],
        capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments", [("group", "list"), ("group", "describe", HOSTILE), ("acl", "list")]
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_commands_show_names_as_escapes(
    cluster: SecureCluster, arguments: tuple[str, ...], form: tuple[str, ...]
) -> None:
    told = command(cluster, *arguments, *form)
    assert "gnp" in told
    assert not UNSHOWN & set(told)
    assert not any(one.startswith("level=error") for one in told.splitlines())


def test_neither_log_has_a_line_that_a_client_made(cluster: SecureCluster) -> None:
    log = cluster.brokers[1].log
    assert not UNSHOWN & set(log)
    assert all(one.startswith("time=") for one in log.splitlines())
    audit = (cluster.directory / "audit.jsonl").read_text()
    assert audit.isascii()
    events = [json.loads(one) for one in audit.splitlines()]
    assert HOSTILE in {one.get("client_id") for one in events}
    assert {one["event"] for one in events} <= {"login", "refusal", "change"}


def pages(cluster: SecureCluster) -> dict[str, str]:
    """{path: its URL}"""
    name = urllib.parse.quote(HOSTILE, safe="")
    paths = ("/", "/topics", f"/topics/{name}", "/topics/plain", "/metrics", f"/v1/topics/{name}")
    return {one: f"http://127.0.0.1:{cluster.brokers[1].ports[1]}{one}" for one in paths}


def test_pages_have_no_markup_and_no_marks_of_others(cluster: SecureCluster) -> None:
    for path, url in pages(cluster).items():
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            text = error.read().decode()
        if not path.startswith("/v1/"):
            assert "<img" not in text, path
            assert not UNSHOWN & set(text), path


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium (2026-11-30)")
def test_a_browser_runs_nothing_that_a_name_has(cluster: SecureCluster, tmp_path: Path) -> None:
    trap = tmp_path / "trap.html"
    trap.write_text(f"<title>{MARKUP}")
    assert "<title>owned</title>" in browsed(trap.as_uri(), tmp_path)  # The trap works.
    for path, url in pages(cluster).items():
        seen = browsed(url, tmp_path)
        assert "<title>owned</title>" not in seen and "<img" not in seen, path


def browsed(url: str, directory: Path) -> str:
    """The page's tree after its scripts have run."""
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=1000")
    return subprocess.run(
        ["chromium", *options, f"--user-data-dir={directory}/profile", "--dump-dom", url],
        capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=True,
    ).stdout  # fmt: skip
