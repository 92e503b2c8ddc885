"""The audit log of a real broker tells who did what, from where, and no secret (decision 0069).

How:    one broker with users, rules and client certificates; users do what they may, and what they
        may not. Then the test reads the audit log, and looks for passwords and records in every
        file that the broker has written for people."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.integration.secure_cluster import SecureBroker, secure_cluster, tls_listener, wait

pytestmark = pytest.mark.integration

PASSWORD = "a password of the audit"
WRONG_PASSWORD = "quite another guess"
SALT = b"salt-of-the-audit"
RECORD = b"the content of a record"
HOSTILE = 'x\n{"event":"change","result":"allowed"}'
TIMEOUT_S = 60
DELIVERY_MS = 50_000


@dataclass
class Audited:
    """The broker, and what its clients need."""

    broker: SecureBroker
    admin: AdminClient
    logins: str
    trust: Path

    @property
    def file(self) -> Path:
        return self.broker.directory / "audit.jsonl"

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(one) for one in self.file.read_bytes().splitlines()]

    def wait_line(self, **fields: object) -> dict[str, object]:
        """The line with these fields, once it is there."""

        def found() -> list[dict[str, object]]:
            return [one for one in self.lines() if fields.items() <= one.items()]

        wait(lambda: bool(found()), lambda: f"no {fields} in {self.file.read_text()}")
        return found()[0]

    def settings(self, user: str, password: str = PASSWORD) -> dict[str, object]:
        return {
            "bootstrap.servers": self.logins,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.trust),
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": password,
            "log_level": 0,
        }

    def produce(self, topic: str, *, client_id: str = "alices-app") -> bool:
        """Produce a record; whether the broker took it."""
        settings = {
            **self.settings("alice"),
            "client.id": client_id,
            "message.timeout.ms": DELIVERY_MS,
        }
        producer = Producer(settings)
        taken: list[bool] = []
        producer.produce(topic, RECORD, on_delivery=lambda error, _: taken.append(error is None))
        assert producer.flush(TIMEOUT_S) == 0
        return taken == [True]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    with secure_cluster(tmp_path_factory.mktemp("audited"), listeners=2) as cluster:
        broker = cluster.brokers[1]
        files, admin = (cluster.authority.issue(one) for one in ("broker-1", "admin"))
        logins = 'sasl_mechanisms = ["SCRAM-SHA-256", "PLAIN"]'
        rules = 'principal_mapping_rules = "RULE:^.*CN=([^,]+).*$/$1/, DEFAULT"'
        broker.sections = (
            tls_listener("LOGINS", broker.ports[0], files, logins).replace('"SSL"', '"SASL_SSL"')
            + tls_listener(
                "ADMIN", broker.ports[1], files, 'client_certificates = "required"', rules
            )
            + '[access]\nenforce_rules = true\nsuper_users = ["User:admin"]\n'
            + f'audit_file = "{broker.directory / "audit.jsonl"}"\n'
        )
        cluster.start()
        client = AdminClient(
            {
                "bootstrap.servers": cluster.bootstrap(1),
                "security.protocol": "SSL",
                "ssl.ca.location": str(files.trust),
                "ssl.certificate.location": str(admin.certificate),
                "ssl.key.location": str(admin.key),
                "client.id": "admins-tool",
            }
        )
        made = Audited(broker, client, cluster.bootstrap(0), files.trust)
        use(made)
        yield made


def done(futures: dict[object, object]) -> None:
    for one in futures.values():
        one.result(TIMEOUT_S)  # type: ignore[attr-defined]


def use(audited: Audited) -> None:
    """What the tests look for: changes by the administrator, use and misuse by others."""
    admin = audited.admin
    done(admin.create_topics([NewTopic("orders", 1, 1), NewTopic("secrets", 1, 1)]))
    with pytest.raises(KafkaException):
        done(admin.create_topics([NewTopic("orders", 1, 1)]))
    password = UserScramCredentialUpsertion(
        "alice",
        ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4_096),
        PASSWORD.encode(),
        SALT,
    )
    done(admin.alter_user_scram_credentials([password]))
    rule = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    done(admin.create_acls([rule]))
    change = ConfigResource(
        ConfigResource.Type.TOPIC,
        "orders",
        incremental_configs=[
            ConfigEntry("retention.ms", "777777", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    done(admin.incremental_alter_configs([change]))
    assert audited.produce("orders")
    assert not audited.produce("secrets", client_id=HOSTILE)
    for user, principal in (("alice", "User:alice"), ("mallory", "unknown")):
        guessing = AdminClient(audited.settings(user, WRONG_PASSWORD))
        with pytest.raises(KafkaException):
            guessing.list_topics(timeout=2)
        audited.wait_line(event="login", result="denied", principal=principal)
    other = AdminClient(audited.settings("alice"))
    for futures in (other.delete_topics(["secrets"]), other.create_acls([rule])):
        with pytest.raises(KafkaException):
            done(futures)
    only = AclBindingFilter(
        rule.restype,
        rule.name,
        rule.resource_pattern_type,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission_type,
    )
    done(admin.delete_acls([only]))
    done(admin.delete_topics(["secrets"]))
    audited.wait_line(api="DeleteTopics", result="allowed")


def test_changes_tell_who_made_them_and_from_where(audited: Audited) -> None:
    by_admin = {
        "event": "change",
        "result": "allowed",
        "broker": 1,
        "principal": "User:admin",
        "listener": "ADMIN",
        "address": "127.0.0.1",
        "client_id": "admins-tool",
    }
    topic = {"resource_type": "TOPIC", "resource_name": "orders"}
    made = audited.wait_line(**by_admin, **topic, api="CreateTopics", operation="CREATE")
    assert str(made["time"]).endswith("Z") and "error" not in made
    audited.wait_line(**by_admin, **topic, api="CreateTopics", error="TOPIC_ALREADY_EXISTS")
    changed = {"operation": "ALTER_CONFIGS", "keys": "retention.ms"}
    audited.wait_line(**by_admin, **topic, api="IncrementalAlterConfigs", **changed)
    rule = {"rule_principal": "User:alice", "rule": "ALLOW WRITE", "rule_host": "*"}
    audited.wait_line(**by_admin, **topic, **rule, api="CreateAcls", operation="CREATE")
    audited.wait_line(**by_admin, **topic, **rule, api="DeleteAcls", operation="DELETE")
    user = {"resource_type": "USER", "resource_name": "alice", "password": "set"}
    audited.wait_line(**by_admin, **user, api="AlterUserScramCredentials")
    gone = {"resource_name": "secrets", "operation": "DELETE"}
    audited.wait_line(**by_admin, **gone, api="DeleteTopics")


def test_logins_tell_the_mechanism_and_no_name_of_an_unknown_user(audited: Audited) -> None:
    scram = {"event": "login", "mechanism": "SCRAM-SHA-256", "listener": "LOGINS"}
    audited.wait_line(**scram, principal="User:alice", result="allowed")
    audited.wait_line(**scram, principal="User:alice", result="denied")
    audited.wait_line(**scram, principal="unknown", result="denied")
    audited.wait_line(event="login", mechanism="TLS", principal="User:admin", result="allowed")
    assert "mallory" not in audited.file.read_text()


def test_refusals_tell_what_was_wanted(audited: Audited) -> None:
    by_alice = {"event": "refusal", "result": "denied", "principal": "User:alice"}
    topic = {"resource_type": "TOPIC", "resource_name": "secrets"}
    told = audited.wait_line(**by_alice, **topic, operation="DESCRIBE", client_id=HOSTILE)
    assert told["api"] == "Metadata"
    audited.wait_line(**by_alice, **topic, api="DeleteTopics")
    audited.wait_line(
        **by_alice, api="CreateAcls", operation="ALTER", resource_name="kafka-cluster"
    )
    denied = [one for one in audited.lines() if one["result"] == "denied"]
    assert not [one for one in denied if one["event"] == "change"]
    assert not [one for one in audited.lines() if one.get("api") in ("Produce", "Fetch")]


def test_no_file_for_people_has_a_password_a_salt_a_value_or_a_record(audited: Audited) -> None:
    directory = audited.broker.directory
    written = {
        one: one.read_bytes()
        for one in directory.rglob("*")
        if one.is_file() and one.suffix in (".log", ".jsonl", ".1")
        if directory / "data" not in one.parents
    }
    assert {one.name for one in written} == {"broker.log", "audit.jsonl"}
    assert all(len(one) > 100 for one in written.values())
    for secret in (PASSWORD.encode(), WRONG_PASSWORD.encode(), SALT, RECORD, b"777777"):
        assert not [path for path, text in written.items() if secret in text], secret


def test_a_path_without_a_directory_ends_the_start_in_one_line(tmp_path: Path) -> None:
    with secure_cluster(tmp_path) as cluster:
        broker = cluster.brokers[1]
        broker.sections = f'[access]\naudit_file = "{tmp_path / "absent" / "audit.jsonl"}"\n'
        broker.start(cluster.seeds)
        broker.wait_logged("[access] audit_file: cannot open")
        assert broker.process is not None and broker.process.wait(TIMEOUT_S) == 1
        assert "Traceback" not in broker.log and "create its directory" in broker.log
