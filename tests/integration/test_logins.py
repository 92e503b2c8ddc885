"""Users log in by SCRAM and PLAIN, and may do what rules let them (decision 0069).

How:    one broker: a listener for logins in the clear, one over TLS, and one with client
        certificates for the administrator, who makes users and rules by Kafka's own calls."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaProducer
from tests.integration.conftest import COMMAND
from tests.integration.secure_cluster import secure_cluster, tls_listener, wait

from strandline.security.authority import Files

pytestmark = pytest.mark.integration

PASSWORD = "correct horse battery"
TIMEOUT_S = 60
DELIVERY_MS = 50_000
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
SCRAMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}


@dataclass
class Secured:
    """The broker's addresses, and the administrator."""

    plain: str
    tls: str
    files: Files
    admin: AdminClient
    directory: Path
    admin_file: Path

    def settings(
        self,
        user: str,
        *,
        mechanism: str = "SCRAM-SHA-256",
        password: str = PASSWORD,
        tls: bool = True,
    ) -> dict[str, object]:
        """What librdkafka needs to log in."""
        return {
            "bootstrap.servers": self.tls if tls else self.plain,
            "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
            "ssl.ca.location": str(self.files.trust),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "log_level": 0,
        }

    def add_user(self, user: str, password: str = PASSWORD) -> None:
        parts = [
            UserScramCredentialUpsertion(user, ScramCredentialInfo(one, 4_096), password.encode())
            for one in SCRAMS.values()
        ]
        for part in parts:
            for future in self.admin.alter_user_scram_credentials([part]).values():
                future.result(TIMEOUT_S)

    def allow(
        self,
        user: str,
        operation: AclOperation,
        name: str,
        *,
        kind: ResourceType = ResourceType.TOPIC,
        permission: AclPermissionType = ALLOW,
        pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    ) -> AclBinding:
        rule = AclBinding(kind, name, pattern, f"User:{user}", "*", operation, permission)
        for future in self.admin.create_acls([rule]).values():
            future.result(TIMEOUT_S)
        return rule

    def create(self, topic: str) -> None:
        for future in self.admin.create_topics([NewTopic(topic, 1, 1)]).values():
            future.result(TIMEOUT_S)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secure_cluster(tmp_path_factory.mktemp("logins"), listeners=3) as cluster:
        broker = cluster.brokers[1]
        files = cluster.authority.issue("broker-1")
        admin = cluster.authority.issue("admin")
        mechanisms = 'sasl_mechanisms = ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"]'
        broker.sections = (
            f'[[listener]]\nname = "OPEN"\nbind = "127.0.0.1:{broker.ports[0]}"\n'
            'protocol = "SASL_PLAINTEXT"\n'
            + tls_listener("LOGINS", broker.ports[1], files, mechanisms).replace(
                'protocol = "SSL"', 'protocol = "SASL_SSL"'
            )
            + tls_listener(
                "ADMIN",
                broker.ports[2],
                files,
                'client_certificates = "required"',
                'principal_mapping_rules = "RULE:^.*CN=([^,]+).*$/$1/, DEFAULT"',
            )
            + '[access]\nenforce_rules = true\nsuper_users = ["User:admin"]\n'
        )
        cluster.start()
        client = AdminClient(
            {
                "bootstrap.servers": cluster.bootstrap(2),
                "security.protocol": "SSL",
                "ssl.ca.location": str(files.trust),
                "ssl.certificate.location": str(admin.certificate),
                "ssl.key.location": str(admin.key),
            }
        )
        admin_file = cluster.directory / "admin.properties"
        admin_file.write_text(
            f"bootstrap.servers={cluster.bootstrap(2)}\nsecurity.protocol=SSL\n"
            f"ssl.ca.location={files.trust}\n"
            f"ssl.certificate.location={admin.certificate}\nssl.key.location={admin.key}\n"
        )
        yield Secured(
            cluster.bootstrap(0),
            cluster.bootstrap(1),
            files,
            client,
            cluster.directory,
            admin_file,
        )


def produce(settings: dict[str, object], topic: str, *, count: int = 10) -> None:
    """Produce, and fail as the broker says."""
    producer = Producer({**settings, "message.timeout.ms": DELIVERY_MS, "acks": "all"})
    errors = []
    for number in range(count):
        producer.produce(
            topic, b"%d" % number, on_delivery=lambda error, _: error and errors.append(error)
        )
    assert producer.flush(TIMEOUT_S) == 0
    if errors:
        raise KafkaException(errors[0])


def consume(settings: dict[str, object], topic: str, group: str, *, count: int = 10) -> None:
    consumer = Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = 0
    try:
        for _ in range(200):
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                raise KafkaException(message.error())
            found += 1
            if found == count:
                return
    finally:
        consumer.close()
    raise AssertionError(f"{found} of {count} records")


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("mechanism", sorted(SCRAMS))
def test_a_user_logs_in_and_does_what_rules_allow(
    secured: Secured, mechanism: str, tls: bool
) -> None:
    user = topic = f"u-{mechanism}-{tls}".lower()
    secured.add_user(user)
    secured.create(topic)
    settings = secured.settings(user, mechanism=mechanism, tls=tls)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        produce(settings, topic)
    secured.allow(user, AclOperation.WRITE, topic)
    produce(settings, topic)
    with pytest.raises(KafkaException):
        consume(settings, topic, user)
    secured.allow(user, AclOperation.READ, topic)
    secured.allow(user, AclOperation.READ, user, kind=ResourceType.GROUP)
    consume(settings, topic, user)


def test_plain_over_tls(secured: Secured) -> None:
    secured.add_user("plain-user")
    secured.create("plain-topic")
    secured.allow("plain-user", AclOperation.ALL, "plain-topic")
    produce(secured.settings("plain-user", mechanism="PLAIN"), "plain-topic")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN"])
@pytest.mark.parametrize(("user", "password"), [("known", "wrong"), ("unknown", PASSWORD)])
def test_a_wrong_password_and_an_unknown_user_get_the_same_error(
    secured: Secured, mechanism: str, user: str, password: str
) -> None:
    secured.add_user("known")
    errors: list[str] = []
    client = AdminClient(
        {
            **secured.settings(user, mechanism=mechanism, password=password),
            "error_cb": lambda error: errors.append(str(error)),
        }
    )

    def is_told() -> bool:
        client.poll(0.2)
        return any("invalid user credentials" in one for one in errors)

    wait(is_told, lambda: f"the errors are {errors}")
    assert not any(user in one.replace(f"{user}@", "") for one in errors)


def test_kafka_python_and_aiokafka_log_in(secured: Secured) -> None:
    secured.add_user("snake")
    secured.create("snakes")
    secured.allow("snake", AclOperation.ALL, "sna", pattern=ResourcePatternType.PREFIXED)
    shared = {
        "bootstrap_servers": secured.tls,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "snake",
        "sasl_plain_password": PASSWORD,
    }
    producer = KafkaProducer(ssl_cafile=str(secured.files.trust), **shared)
    assert producer.send("snakes", b"one").get(TIMEOUT_S).offset == 0
    producer.close()

    async def produce_async() -> int:
        from aiokafka.helpers import create_ssl_context

        context = create_ssl_context(cafile=str(secured.files.trust))
        other = AIOKafkaProducer(ssl_context=context, **shared)
        await other.start()
        try:
            return int((await other.send_and_wait("snakes", b"two")).offset)
        finally:
            await other.stop()

    assert asyncio.run(produce_async()) == 1


def test_a_rule_and_a_user_that_go_stop_a_client_that_is_connected(secured: Secured) -> None:
    secured.add_user("leaver")
    secured.create("left")
    rule = secured.allow("leaver", AclOperation.WRITE, "left")
    settings = secured.settings("leaver")
    producer = Producer({**settings, "message.timeout.ms": DELIVERY_MS})
    outcomes: list[object] = []

    def send() -> object:
        producer.produce("left", b"x", on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(TIMEOUT_S) == 0
        return outcomes[-1]

    assert send() is None
    only = AclBindingFilter(
        rule.restype,
        rule.name,
        rule.resource_pattern_type,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission_type,
    )
    for future in secured.admin.delete_acls([only]).values():
        assert len(future.result(TIMEOUT_S)) == 1
    assert "TOPIC_AUTHORIZATION_FAILED" in repr(send())
    for mechanism in SCRAMS.values():
        gone = UserScramCredentialDeletion("leaver", mechanism)
        for future in secured.admin.alter_user_scram_credentials([gone]).values():
            future.result(TIMEOUT_S)
    assert "leaver" not in secured.admin.describe_user_scram_credentials().result(TIMEOUT_S)
    with pytest.raises(KafkaException):
        AdminClient(settings).list_topics(timeout=2)


def test_a_client_without_a_login_gets_nowhere(secured: Secured) -> None:
    client = AdminClient({"bootstrap.servers": secured.plain, "log_level": 0})
    with pytest.raises(KafkaException):
        client.list_topics(timeout=2)


def test_users_and_rules_are_described(secured: Secured) -> None:
    secured.add_user("described")
    rule = secured.allow("described", AclOperation.READ, "some", permission=DENY)
    found = secured.admin.describe_user_scram_credentials(["described"])["described"]
    infos = found.result(TIMEOUT_S).scram_credential_infos
    assert [(one.mechanism, one.iterations) for one in infos] == [
        (one, 4_096) for one in SCRAMS.values()
    ]
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        "User:described",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert secured.admin.describe_acls(everything).result(TIMEOUT_S) == [rule]


def run(*words: str, file: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """`strandline ...` with a client's configuration file."""
    return subprocess.run(
        [COMMAND, *words, "--client-config", str(file)],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_commands_make_users_and_rules_and_log_in(secured: Secured) -> None:
    admin, mine = secured.admin_file, secured.directory / "carol.properties"
    made = run("user", "create", "carol", file=admin, text=PASSWORD + "\n")
    assert "may log in by SCRAM-SHA-256, SCRAM-SHA-512" in made.stdout, made.stderr
    mine.write_text(
        f"bootstrap.servers={secured.tls}\nsecurity.protocol=SASL_SSL\n"
        f"ssl.ca.location={secured.files.trust}\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.username=carol\nsasl.password={PASSWORD}\n"
    )
    secured.create("carols")
    refused = run("produce", "carols", file=mine, text="one\n")
    assert refused.returncode and "TOPIC_AUTHORIZATION_FAILED" in refused.stderr, refused
    rule = ("--allow-principal", "User:carol", "--topic", "car", "--prefixed")
    added = run("acl", "create", *rule, file=admin)
    assert "1 rule" in added.stdout, added.stderr
    produced = run("produce", "carols", file=mine, text="one\n")
    assert produced.returncode == 0, produced.stderr
    read = run("consume", "carols", "--from", "earliest", "-n", "1", file=mine)
    assert "one" in read.stdout, read.stderr
    listed = run("acl", "list", "--topic", "carols", "--json", file=admin)
    assert [one["principal"] for one in json.loads(listed.stdout)] == ["User:carol"]
    users = json.loads(run("user", "list", "--json", file=admin).stdout)
    assert {"user": "carol", "mechanisms": dict.fromkeys(sorted(SCRAMS), 8_192)} in users
    assert "1 rule" in run("acl", "delete", "--topic", "car", file=admin).stdout
    assert run("user", "delete", "carol", file=admin).returncode == 0
    gone = run("topic", "list", file=mine)
    assert gone.returncode and "invalid user credentials" in gone.stderr, gone
    assert PASSWORD not in "".join(one.stdout + one.stderr for one in (made, refused, read, gone))
