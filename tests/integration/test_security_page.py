"""The pages of security are typed: certificates are made, and configuration runs.

Source: docs/operating/security-tls.md, docs/operating/security-logins.md."""

import subprocess
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import COMMAND
from tests.integration.pages import PAGES, security_section
from tests.integration.secure_cluster import secure_cluster

pytestmark = pytest.mark.integration

CERTIFICATES = (PAGES / "security-tls.md").read_text()
TIMEOUT_S = 40


def blocks(word: str, text: str) -> list[str]:
    """The blocks of this kind in a text."""
    return [one.partition("\n")[2] for one in text.split("```")[1::2] if one.startswith(word)]


def test_the_pages_make_certificates_and_a_broker_that_only_their_owners_reach(
    tmp_path: Path,
) -> None:
    for line in "".join(blocks("console", CERTIFICATES)).splitlines():
        command = line.removeprefix("$ ").split()
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=TIMEOUT_S)
    with secure_cluster(tmp_path / "cluster", listeners=2) as cluster:
        broker = cluster.brokers[1]
        listeners, rpc = (
            blocks("toml", security_section(heading))[0].replace("/etc/strandline", str(tmp_path))
            for heading in ("Listeners", "TLS between brokers")
        )
        inner, public = broker.ports
        broker.sections = (
            listeners.replace("127.0.0.1:9092", f"127.0.0.1:{inner}")
            .replace("0.0.0.0:9093", f"0.0.0.0:{public}")
            .replace("broker-1.example:9093", f"localhost:{public}")
        )
        broker.rpc = rpc.replace("[rpc]\n", "")
        cluster.start()
        own = {
            "ssl.certificate.location": str(tmp_path / "app.pem"),
            "ssl.key.location": str(tmp_path / "app.key"),
        }
        options = {
            "bootstrap.servers": f"localhost:{public}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(tmp_path / "ca.pem"),
            "broker.address.family": "v4",
        }
        brokers = AdminClient(options | own).list_topics(timeout=TIMEOUT_S).brokers
        assert [(one.host, one.port) for one in brokers.values()] == [("localhost", public)]
        (conf,) = blocks("properties", security_section("Commands"))
        (tmp_path / "admin.conf").write_text(
            conf.replace("/etc/strandline", str(tmp_path)).replace(
                "broker-1.example:9093", f"localhost:{public}"
            )
        )
        (command,) = blocks("sh", security_section("Commands"))
        typed = command.replace("strandline", COMMAND, 1).split()
        done = subprocess.run(
            typed, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert done.returncode == 0, done.stderr
        stranger = AdminClient(options)
        stranger.poll(0.1)
        broker.wait_logged("listener PUBLIC: the client showed no certificate, and must")
