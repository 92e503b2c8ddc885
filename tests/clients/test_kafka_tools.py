"""Kafka's command line tools with `--command-config` behind a login (decision 0069)."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from clients.access.cluster import AccessCluster, access_cluster
from clients.access.tools import Tools, kafka_home

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

RULE = "(principal=User:typed, host=*, operation={}, permissionType=ALLOW)"


@dataclass
class Typed:
    """The tools as the super user and as `app`."""

    cluster: AccessCluster
    admin: Tools
    app: Tools


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Typed]:
    for command in ("java", "mvn"):
        if not shutil.which(command):
            pytest.skip(f"`{command}` is not on this machine (2026-11-30)")
    try:
        home = kafka_home()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{error.stderr[-200:]}: Kafka's jars can't be fetched here (2026-11-30)")
    directory = tmp_path_factory.mktemp("tools")
    with access_cluster(directory) as cluster:
        yield Typed(
            cluster,
            Tools(home, cluster.admin(), directory),
            Tools(home, cluster.password(), directory),
        )


def refused(done: "subprocess.CompletedProcess[str]", error: str) -> None:
    """A tool that says this error, whichever stream and exit code it has for it."""
    assert error in done.stdout + done.stderr, done.stdout + done.stderr


def test_kafka_acls_adds_lists_and_removes_rules(typed: Typed) -> None:
    rule = ("--topic", "typed-", "--resource-pattern-type", "prefixed")
    who = ("--allow-principal", "User:typed", "--operation", "Read", "--operation", "Write")
    added = typed.admin.run("kafka-acls", "--add", *who, *rule)
    assert "ResourcePattern(resourceType=TOPIC, name=typed-, patternType=PREFIXED)" in added
    listed = typed.admin.run("kafka-acls", "--list", *rule)
    for operation in ("READ", "WRITE"):
        assert RULE.format(operation) in listed
    refused(typed.app.attempt("kafka-acls", "--list"), "ClusterAuthorizationException")
    refused(typed.app.attempt("kafka-acls", "--add", *who, *rule), "ClusterAuthorizationException")
    typed.admin.run("kafka-acls", "--remove", "--force", *who, *rule)
    assert "typed" not in typed.admin.run("kafka-acls", "--list", *rule)


def test_kafka_configs_makes_shows_and_deletes_users(typed: Typed) -> None:
    user = ("--entity-type", "users", "--entity-name", "typed")
    secrets = "SCRAM-SHA-256=[iterations=4096,password=secret],SCRAM-SHA-512=[password=secret]"
    made = typed.admin.run("kafka-configs", "--alter", *user, "--add-config", secrets)
    assert "Completed updating config for user typed." in made
    shown = typed.admin.run("kafka-configs", "--describe", *user)
    assert (
        "SCRAM credential configs for user-principal 'typed' are"
        " SCRAM-SHA-256=iterations=4096, SCRAM-SHA-512=iterations=4096" in shown
    )
    refused(
        typed.app.attempt("kafka-configs", "--alter", *user, "--add-config", secrets),
        "ClusterAuthorizationException",
    )
    gone = "SCRAM-SHA-256,SCRAM-SHA-512"
    typed.admin.run("kafka-configs", "--alter", *user, "--delete-config", gone)
    assert "SCRAM" not in typed.admin.run("kafka-configs", "--describe", *user)


def test_kafka_configs_sets_and_shows_quotas(typed: Typed) -> None:
    kinds = ("--entity-type", "users", "--entity-type", "clients")
    entity = (*kinds[:2], "--entity-name", "typed", *kinds[2:], "--entity-name", "reader")
    typed.admin.run("kafka-configs", "--alter", *entity, "--add-config", "producer_byte_rate=4096")
    assert (
        "Quota configs for user-principal 'typed', client-id 'reader' are"
        " producer_byte_rate=4096.0" in typed.admin.run("kafka-configs", "--describe", *kinds)
    )
