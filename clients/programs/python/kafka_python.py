"""The program of kafka-python."""

import sys
from collections.abc import Iterable

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.errors import KafkaError, NoError
from kafka.net.sasl.oauth import AbstractTokenProvider
from lines import (
    IDEMPOTENT,
    PARTITIONS,
    REPLICAS,
    RETENTION_MS,
    Logged,
    Stop,
    access,
    described,
    record,
    show,
    ssl_context,
    token,
)

TIMEOUT_S = 30
BOOTSTRAP_MS = 5_000


class Tokens(AbstractTokenProvider):
    """A new token for each login."""

    def token(self) -> str:
        """By the client's credentials."""
        return token()


def settings(bootstrap: str) -> dict[str, object]:
    """What every client of kafka-python needs to come in."""
    found: dict[str, object] = {"bootstrap_servers": bootstrap.split(",")}
    told = access()
    if told:
        found |= {"security_protocol": told["protocol"], "ssl_context": ssl_context()}
    if "mechanism" in told:
        found |= {"sasl_mechanism": told["mechanism"]}
    if "user" in told:
        found |= {"sasl_plain_username": told["user"], "sasl_plain_password": told["password"]}
    if "token_url" in told:
        found |= {"sasl_oauth_token_provider": Tokens()}
    return found


def admin(bootstrap: str, topic: str) -> None:
    """Make, describe, alter and delete."""
    client = KafkaAdminClient(**settings(bootstrap))
    for name in (topic, f"{topic}-gone"):
        client.create_topics([NewTopic(name, PARTITIONS, REPLICAS)])
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": RETENTION_MS})
    client.alter_configs([resource])
    retention = ""
    while retention != RETENTION_MS:  # a broker may hear of the change a moment later
        described = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        retention = _value(described, "retention.ms")
    print(f"partitions\t{len(client.describe_topics([topic])[0]['partitions'])}")
    print(f"retention.ms\t{retention}")
    client.delete_topics([f"{topic}-gone"])
    client.close()


def produce(bootstrap: str, topic: str, count: str, *kinds: str) -> None:
    """Write the records once for each kind."""
    for kind in kinds:
        is_idempotent = kind == IDEMPOTENT
        producer = KafkaProducer(
            **settings(bootstrap),
            enable_idempotence=is_idempotent,
            compression_type=None if is_idempotent or kind == "none" else kind,
        )
        sent = []
        for number in range(int(count)):
            key, value, headers = record(number)
            sent.append(producer.send(f"{topic}-{kind}", key=key, value=value, headers=headers))
        producer.flush(TIMEOUT_S)
        for future in sent:
            future.get(TIMEOUT_S)
        producer.close()


def consume(bootstrap: str, topic: str, count: str) -> None:
    """Read with an assignment."""
    consumer = KafkaConsumer(**settings(bootstrap), enable_auto_commit=False)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    left = int(count)
    while left:
        left -= _show(consumer.poll(timeout_ms=500))
    consumer.close()


def member(bootstrap: str, topic: str, group: str) -> None:
    """Read as a member of a group."""
    stop = Stop()
    consumer = KafkaConsumer(
        topic,
        **settings(bootstrap),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=500,
    )
    while not stop.is_asked:
        if _show(consumer.poll(timeout_ms=100)):
            consumer.commit()
    consumer.close()


def writer(bootstrap: str, topic: str) -> None:
    """Write idempotently until asked to stop; print each record that was acknowledged."""
    stop = Stop()
    producer = KafkaProducer(**settings(bootstrap), enable_idempotence=True)
    number = 0
    while not stop.is_asked:
        key, value, headers = record(number)
        producer.send(topic, key=key, value=value, headers=headers).get(TIMEOUT_S)
        print(f"acked\t{number}", flush=True)
        number += 1
    producer.close()


def survey(bootstrap: str, topic: str, group: str) -> None:
    """Print the log's ends, the groups that are seen, and what a group has committed."""
    consumer = KafkaConsumer(**settings(bootstrap))
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    for at, offset in consumer.end_offsets(partitions).items():
        print(f"end\t{at.partition}\t{offset}")
    consumer.close()
    client = KafkaAdminClient(**settings(bootstrap))
    for found in client.list_groups():
        print(f"group\t{found['group_id']}")
    for at, committed in client.list_group_offsets(group)[group].items():
        print(f"committed\t{at.partition}\t{committed.offset}")
    client.close()


def govern(bootstrap: str, name: str) -> None:
    """Make, show and delete rules and a user, as `clients.access.governing` says."""
    client = KafkaAdminClient(**settings(bootstrap))
    pattern = ResourcePattern(ResourceType.TOPIC, name, ACLResourcePatternType.PREFIXED)
    rules = [
        ACL(f"User:{name}", "*", operation, ACLPermissionType.ALLOW, pattern)
        for operation in (ACLOperation.READ, ACLOperation.WRITE)
    ]
    if failed := client.create_acls(rules)["failed"]:
        sys.exit(f"{failed}")
    anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    wanted = ACLFilter(f"User:{name}", None, ACLOperation.ANY, ACLPermissionType.ANY, anything)

    def rules_of(count: int) -> list[ACL]:
        return described(
            lambda: list(client.describe_acls(wanted)[0]), lambda found: len(found) == count
        )

    _show_rules("rule", rules_of(len(rules)))
    for _, matched, error in client.delete_acls([wanted]):
        if error is not NoError:
            raise error
        _show_rules("deleted", matched)
    _show_rules("left", rules_of(0))
    mechanisms = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    for mechanism in mechanisms:
        made = UserScramCredentialUpsertion(name, mechanism, "secret", iterations=5_000)
        _check(client.alter_user_scram_credentials([made])[name])

    def user_of(count: int) -> dict[str, object]:
        return described(
            lambda: client.describe_user_scram_credentials([name])[name],
            lambda found: len(found["credential_infos"]) == count,
        )

    found = user_of(len(mechanisms))
    for info in found["credential_infos"]:
        print(f"user\t{info['mechanism'].name}\t{info['iterations']}")
    for mechanism in mechanisms:
        gone = UserScramCredentialDeletion(name, mechanism)
        _check(client.alter_user_scram_credentials([gone])[name])
    print(f"gone\t{user_of(0)['error']}")
    client.close()


def _check(error: str | None) -> None:
    if error:
        sys.exit(error)


def _show_rules(word: str, rules: Iterable[ACL]) -> None:
    for rule in sorted(rules, key=lambda one: one.operation.name):
        pattern = rule.resource_pattern
        what = f"{pattern.resource_type.name}\t{pattern.resource_name}\t{pattern.pattern_type.name}"
        who = f"{rule.principal}\t{rule.host}\t{rule.operation.name}\t{rule.permission_type.name}"
        print(f"{word}\t{what}\t{who}")


def attempt(bootstrap: str, name: str, what: str) -> None:
    """Try one thing; print `done`, or `refused` with the class of the error."""
    logged = Logged()
    told = {**settings(bootstrap), "bootstrap_timeout_ms": BOOTSTRAP_MS}
    try:
        ATTEMPTS[what](told, name)
    except KafkaError as error:
        print(f"refused\t{type(error).__name__} {logged.errors}".rstrip())
    else:
        print("done")


def _write(told: dict[str, object], topic: str) -> None:
    producer = KafkaProducer(**told, enable_idempotence=True)
    producer.send(topic, b"x").get(TIMEOUT_S)


def _read(told: dict[str, object], topic: str) -> None:
    _subscribe(told, topic, f"allowed-{topic}")


def _join(told: dict[str, object], group: str) -> None:
    _subscribe(told, "allowed-seen", group)


def _subscribe(told: dict[str, object], topic: str, group: str) -> None:
    consumer = KafkaConsumer(topic, **told, group_id=group, auto_offset_reset="earliest")
    while not consumer.poll(timeout_ms=200):
        pass
    consumer.close()


def _create(told: dict[str, object], topic: str) -> None:
    KafkaAdminClient(**told).create_topics([NewTopic(topic, PARTITIONS, REPLICAS)])


def _delete(told: dict[str, object], topic: str) -> None:
    KafkaAdminClient(**told).delete_topics([topic])


def _operate(told: dict[str, object], _: str) -> None:
    pattern = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    everything = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)
    KafkaAdminClient(**told).describe_acls(everything)


def _log_in(told: dict[str, object], topic: str) -> None:
    KafkaAdminClient(**told).describe_topics([topic])


ATTEMPTS = {
    "write": _write,
    "read": _read,
    "join": _join,
    "create": _create,
    "delete": _delete,
    "operate": _operate,
    "login": _log_in,
}


def _show(polled) -> int:  # type: ignore[no-untyped-def]
    records = [one for batch in polled.values() for one in batch]
    for one in records:
        show(one.partition, one.offset, one.key, one.value, one.headers)
    return len(records)


def _value(described, key: str) -> str:  # type: ignore[no-untyped-def]
    """The value of a key, wherever this version of the client puts it."""
    if isinstance(described, dict):
        if key in described:
            found = described[key]
            return str(found.get("value") if isinstance(found, dict) else found)
        described = list(described.values())
    for inner in described if isinstance(described, list) else []:
        if value := _value(inner, key):
            return value
    return ""


if __name__ == "__main__":
    steps = (admin, produce, consume, member, writer, survey, govern, attempt)
    {step.__name__: step for step in steps}[sys.argv[1]](*sys.argv[2:])
