"""The HTTP port takes tokens: the section of the page is typed, and a real broker asked.

Source: docs/operating/security.md, docs/operating/monitoring.md; decision 0069."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.ports import free_ports
from tests.integration.secure_cluster import SecureBroker, plain_listener, secure_cluster, wait
from tests.integration.test_security_users_page import PLACE, typed, walk

from strandline.security.http_tokens import READ

pytestmark = pytest.mark.integration

TIMEOUT_S = 60
DISGUISES = (
    "/healthz/",
    "/healthz/../metrics",
    "//healthz",
    "/healthz;a",
    "/healthz%3f",
    "/HEALTHZ",
    "/metrics?x=/healthz",
    "/topics/healthz",
)
PATHS = ("/", "/metrics", "/v1/brokers", "/topics", "/no-such-page")
HEALTH = ("/healthz", "/readyz")


@dataclass
class Watched:
    """A broker whose HTTP port is as the page has it."""

    broker: SecureBroker
    directory: Path
    url: str
    context: ssl.SSLContext

    def ask(self, path: str, token: str = "") -> int:
        """The status of an answer."""
        request = urllib.request.Request(self.url + path)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self.context) as one:
                return int(one.status)
        except urllib.error.HTTPError as error:
            return error.code

    def audit(self) -> list[dict[str, object]]:
        """The audit log's lines."""
        file = self.directory / "audit.jsonl"
        return [json.loads(one) for one in file.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    directory = tmp_path_factory.mktemp("http")
    with secure_cluster(directory / "cluster", listeners=1) as cluster:
        broker, files = cluster.brokers[1], cluster.authority.issue("broker-1")
        (directory / "broker-1.pem").symlink_to(files.certificate)
        (directory / "broker-1.key").symlink_to(files.key)
        (port,) = free_ports(1)
        sections = [text for _, text in walk("Monitoring and console", directory)]
        (toml,) = sections
        toml = toml.replace(PLACE, str(directory)).replace("9404", str(port))
        audit = f'[access]\naudit_file = "{directory / "audit.jsonl"}"\n'
        broker.sections = plain_listener("PLAIN", broker.ports[0]) + toml + audit
        cluster.start()
        context = ssl.create_default_context(cafile=str(files.trust))
        context.check_hostname = False
        yield Watched(broker, directory, f"https://127.0.0.1:{port}", context)


def test_a_token_sees_every_page_and_no_token_sees_health_alone(watched: Watched) -> None:
    token = (watched.directory / "prometheus.token").read_text().strip()
    assert [watched.ask(path, token) for path in PATHS] == [200, 200, 200, 200, 404]
    assert {watched.ask(path) for path in (*PATHS, *DISGUISES)} == {401}
    assert {watched.ask(path) for path in HEALTH} == {200}
    assert watched.ask("/metrics", token + "x") == 401

    def told() -> list[dict[str, object]]:
        return [one for one in watched.audit() if one["event"] == "login"]

    wait(lambda: len(told()) == 1, lambda: str(watched.audit()))
    (line,) = told()
    fields = ("result", "principal", "listener", "address", "mechanism")
    assert [line[one] for one in fields] == ["denied", "unknown", "[metrics]", "127.0.0.1", "TOKEN"]
    written = watched.broker.log + (watched.directory / "audit.jsonl").read_text()
    assert token not in written


def test_a_browser_is_asked_for_a_password_which_is_the_token(watched: Watched) -> None:
    token = (watched.directory / "prometheus.token").read_text().strip()
    passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
    passwords.add_password(None, watched.url, "mia", token)
    opener = urllib.request.build_opener(
        urllib.request.HTTPBasicAuthHandler(passwords),
        urllib.request.HTTPSHandler(context=watched.context),
    )
    with opener.open(watched.url + "/", timeout=TIMEOUT_S) as answer:
        assert b"<html" in answer.read()


def test_tokens_come_and_go_while_the_broker_runs(watched: Watched) -> None:
    made = typed("strandline http-token create mia --file http-tokens.jsonl", watched.directory)
    token = made.stdout.strip()
    wait(lambda: watched.ask("/metrics", token) == 200, lambda: watched.broker.log)
    listed = typed("strandline http-token list --file http-tokens.jsonl --json", watched.directory)
    roles = {one["token"]: one["role"] for one in json.loads(listed.stdout)}
    assert roles == {"prometheus": READ, "mia": READ}
    gone = typed("strandline http-token delete mia --file http-tokens.jsonl", watched.directory)
    assert gone.returncode == 0, gone.stderr
    wait(lambda: watched.ask("/metrics", token) == 401, lambda: watched.broker.log)
    (watched.directory / "http-tokens.jsonl").write_text("{")
    watched.broker.wait_logged("line 1 is no token")
    old = (watched.directory / "prometheus.token").read_text().strip()
    assert watched.ask("/metrics", old) == 200
