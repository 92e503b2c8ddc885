"""The program of confluent-kafka (librdkafka)."""

import sys
from collections.abc import Iterable

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
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
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from lines import (
    IDEMPOTENT,
    PARTITIONS,
    REPLICAS,
    RETENTION_MS,
    Stop,
    access,
    described,
    record,
    show,
)

TIMEOUT_S = 30
TRIES = 5
KEYS = {
    "protocol": "security.protocol",
    "ca": "ssl.ca.location",
    "certificate": "ssl.certificate.location",
    "key": "ssl.key.location",
    "mechanism": "sasl.mechanism",
    "user": "sasl.username",
    "password": "sasl.password",
    "token_url": "sasl.oauthbearer.token.endpoint.url",
    "client_id": "sasl.oauthbearer.client.id",
    "client_secret": "sasl.oauthbearer.client.secret",
}
MOVING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._WAIT_COORD,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
)
FINAL = (KafkaError._AUTHENTICATION, KafkaError._SSL)


class RefusedError(Exception):
    """An error that librdkafka tells the application's callback, and tries again."""


def settings(bootstrap: str) -> dict[str, object]:
    """What every client of librdkafka needs to come in."""
    told = access()
    found: dict[str, object] = {KEYS[key]: value for key, value in told.items() if key in KEYS}
    if "token_url" in told:
        found |= {"sasl.oauthbearer.method": "oidc", "https.ca.location": told["ca"]}
    return {"bootstrap.servers": bootstrap, **found}


def admin(bootstrap: str, topic: str) -> None:
    """Make, describe, alter and delete."""
    client = AdminClient(settings(bootstrap))
    for name in (topic, f"{topic}-gone"):
        client.create_topics([NewTopic(name, PARTITIONS, REPLICAS)])[name].result(TIMEOUT_S)
    entry = ConfigEntry("retention.ms", RETENTION_MS, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    retention = ""
    while retention != RETENTION_MS:  # a broker may hear of the change a moment later
        described = client.describe_configs([resource])[resource].result(TIMEOUT_S)
        retention = described["retention.ms"].value
    print(f"partitions\t{len(client.list_topics(topic).topics[topic].partitions)}")
    print(f"retention.ms\t{retention}")
    client.delete_topics([f"{topic}-gone"])[f"{topic}-gone"].result(TIMEOUT_S)


def produce(bootstrap: str, topic: str, count: str, *kinds: str) -> None:
    """Write the records once for each kind."""
    for kind in kinds:
        is_idempotent = kind == IDEMPOTENT
        producer = Producer(
            {
                **settings(bootstrap),
                "enable.idempotence": is_idempotent,
                "compression.type": "none" if is_idempotent else kind,
            }
        )
        failures: list[object] = []
        for number in range(int(count)):
            key, value, headers = record(number)
            producer.produce(
                f"{topic}-{kind}",
                key=key,
                value=value,
                headers=headers,
                on_delivery=lambda error, _, to=failures: to.append(error) if error else None,
            )
        left = producer.flush(TIMEOUT_S)
        if left or failures:
            sys.exit(f"{kind}: {left} left, {failures[:1]}")


def consume(bootstrap: str, topic: str, count: str) -> None:
    """Read with an assignment."""
    consumer = _consumer(bootstrap, topic)
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    left = int(count)
    while left:
        left -= len([_show(m) for m in consumer.consume(left, timeout=1)])
    consumer.close()


def member(bootstrap: str, topic: str, group: str) -> None:
    """Read as a member of a group."""
    stop = Stop()
    consumer = _consumer(bootstrap, group)
    consumer.subscribe([topic])
    while not stop.is_asked:
        messages = consumer.consume(100, timeout=0.1)
        for message in messages:
            _show(message)
        if messages:
            _commit(consumer)
    consumer.close()


def writer(bootstrap: str, topic: str) -> None:
    """Write idempotently until asked to stop; print each record that was acknowledged."""
    stop = Stop()
    producer = Producer({**settings(bootstrap), "enable.idempotence": True})
    failures: list[object] = []

    def tell(number: int, error: object) -> None:
        if error:
            failures.append(error)
        else:
            print(f"acked\t{number}", flush=True)

    number = 0
    while not stop.is_asked and not failures:
        key, value, headers = record(number)
        producer.produce(
            topic,
            key=key,
            value=value,
            headers=headers,
            on_delivery=lambda error, _, number=number: tell(number, error),
        )
        producer.poll(0.02)
        number += 1
    left = producer.flush(TIMEOUT_S)
    if left or failures:
        sys.exit(f"{left} left, {failures[:1]}")


def survey(bootstrap: str, topic: str, group: str) -> None:
    """Print the log's ends, the groups that are seen, and what a group has committed."""
    client = AdminClient(settings(bootstrap))
    wanted = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(PARTITIONS)}
    for at, future in client.list_offsets(wanted).items():
        print(f"end\t{at.partition}\t{future.result(TIMEOUT_S).offset}")
    for found in client.list_consumer_groups().result(TIMEOUT_S).valid:
        print(f"group\t{found.group_id}")
    asked = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    for at in asked[group].result(TIMEOUT_S).topic_partitions:
        print(f"committed\t{at.partition}\t{at.offset}")


def govern(bootstrap: str, name: str) -> None:
    """Make, show and delete rules and a user, as `clients.access.governing` says."""
    client = AdminClient(settings(bootstrap))
    rules = [
        AclBinding(
            ResourceType.TOPIC,
            name,
            ResourcePatternType.PREFIXED,
            f"User:{name}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for operation in (AclOperation.READ, AclOperation.WRITE)
    ]
    for future in client.create_acls(rules).values():
        future.result(TIMEOUT_S)
    wanted = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        f"User:{name}",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )

    def rules_of(count: int) -> list[AclBinding]:
        return described(
            lambda: client.describe_acls(wanted).result(TIMEOUT_S),
            lambda found: len(found) == count,
        )

    _show_rules("rule", rules_of(len(rules)))
    _show_rules("deleted", client.delete_acls([wanted])[wanted].result(TIMEOUT_S))
    _show_rules("left", rules_of(0))
    mechanisms = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    for mechanism in mechanisms:
        made = UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, 5_000), b"secret")
        client.alter_user_scram_credentials([made])[name].result(TIMEOUT_S)

    def mechanisms_of() -> list[ScramCredentialInfo] | KafkaError:
        try:
            found = client.describe_user_scram_credentials([name])[name].result(TIMEOUT_S)
        except KafkaException as error:
            return error.args[0]
        return found.scram_credential_infos

    def has_all(found: list[ScramCredentialInfo] | KafkaError) -> bool:
        return isinstance(found, list) and len(found) == len(mechanisms)

    for info in described(mechanisms_of, has_all):
        print(f"user\t{info.mechanism.name}\t{info.iterations}")
    for mechanism in mechanisms:
        gone = UserScramCredentialDeletion(name, mechanism)
        client.alter_user_scram_credentials([gone])[name].result(TIMEOUT_S)
    gone = described(mechanisms_of, lambda found: isinstance(found, KafkaError))
    print(f"gone\t{gone.name()}")


def _show_rules(word: str, rules: Iterable[AclBinding]) -> None:
    for rule in sorted(rules, key=lambda one: one.operation.name):
        kind, pattern = rule.restype.name, rule.resource_pattern_type.name
        who = f"{rule.principal}\t{rule.host}\t{rule.operation.name}\t{rule.permission_type.name}"
        print(f"{word}\t{kind}\t{rule.name}\t{pattern}\t{who}")


def attempt(bootstrap: str, name: str, what: str) -> None:
    """Try one thing; print `done`, or `refused` with the name of librdkafka's error."""

    def tell(error: KafkaError) -> None:
        if error.code() in FINAL:
            raise RefusedError(error.name())

    told = {**settings(bootstrap), "error_cb": tell, "log_level": 0}
    try:
        ATTEMPTS[what](told, name)
    except KafkaException as error:
        print(f"refused\t{error.args[0].name()}")
    except RefusedError as error:
        print(f"refused\t{error}")
    else:
        print("done")


def _write(told: dict[str, object], topic: str) -> None:
    errors: list[KafkaError | None] = []
    producer = Producer({**told, "enable.idempotence": True})
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    while not errors:
        producer.poll(0.1)
    if errors[0]:
        raise KafkaException(errors[0])


def _read(told: dict[str, object], topic: str) -> None:
    _subscribe(told, topic, f"allowed-{topic}")


def _join(told: dict[str, object], group: str) -> None:
    _subscribe(told, "allowed-seen", group)


def _subscribe(told: dict[str, object], topic: str, group: str) -> None:
    consumer = Consumer({**told, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    while (message := consumer.poll(0.1)) is None:
        pass
    if message.error():
        raise KafkaException(message.error())
    consumer.close()


def _create(told: dict[str, object], topic: str) -> None:
    client = AdminClient(told)
    client.create_topics([NewTopic(topic, PARTITIONS, REPLICAS)])[topic].result(TIMEOUT_S)


def _delete(told: dict[str, object], topic: str) -> None:
    client = AdminClient(told)
    client.delete_topics([topic])[topic].result(TIMEOUT_S)


def _operate(told: dict[str, object], _: str) -> None:
    client = AdminClient(told)
    rule = AclBinding(
        ResourceType.BROKER,
        "kafka-cluster",
        ResourcePatternType.LITERAL,
        "User:app",
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )
    client.create_acls([rule])[rule].result(TIMEOUT_S)


def _log_in(told: dict[str, object], topic: str) -> None:
    client = AdminClient(told)
    for left in reversed(range(TRIES)):
        client.poll(0.2)
        try:
            client.list_topics(topic, timeout=2)
        except KafkaException:
            if not left:
                raise
        else:
            return


ATTEMPTS = {
    "write": _write,
    "read": _read,
    "join": _join,
    "create": _create,
    "delete": _delete,
    "operate": _operate,
    "login": _log_in,
}


def _commit(consumer: Consumer) -> None:
    """What was read so far; a coordinator that moves takes it with the next records."""
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() not in MOVING:
            raise


def _consumer(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {
            **settings(bootstrap),
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 500,
        }
    )


def _show(message) -> None:  # type: ignore[no-untyped-def]
    if message.error():
        sys.exit(str(message.error()))
    show(message.partition(), message.offset(), message.key(), message.value(), message.headers())


if __name__ == "__main__":
    steps = (admin, produce, consume, member, writer, survey, govern, attempt)
    {step.__name__: step for step in steps}[sys.argv[1]](*sys.argv[2:])
