"""What rules of access cost a broker: CPU microseconds a request, with rules enforced and without.

Why:    a check stands before each request, so it must cost next to nothing.
How:    Two brokers on one machine, one that enforces a thousand rules, one that enforces none. A
        client without a name sends the same Produce request of 16 KB, acks=1, then asks for the
        same records, with several requests in flight; the brokers take turns, and each figure is
        the median of the rounds.
"""

from collections.abc import Callable
from pathlib import Path
from statistics import median

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from bench.load import make_batch, produce_frame
from bench.paced import create_topic
from bench.tls import FIRST_PORT, READ, WRITTEN, ask, broker, fetch_frame

BATCH_BYTES, RULES, ROUNDS, ROUND_S = 16_384, 1_000, 9, 3
ENFORCED = '[access]\nenforce_rules = true\nsuper_users = ["User:CN=client"]\n'


def run(work: Path, say: Callable[..., None]) -> None:
    """Measure both brokers in turn."""
    with (
        broker(work / "open") as (open_pid, open_doors),
        broker(work / "ruled", ENFORCED, first_port=FIRST_PORT + 10) as (ruled_pid, ruled_doors),
    ):
        ruled_admin = {
            "security.protocol": "SSL",
            "ssl.ca.location": str(work / "ruled/ca.pem"),
            "ssl.certificate.location": str(work / "ruled/client.pem"),
            "ssl.key.location": str(work / "ruled/client.key"),
        }
        add_rules(f"localhost:{ruled_doors[-1].port}", ruled_admin)
        sides = {"open": (open_doors[0], open_pid), "ruled": (ruled_doors[0], ruled_pid)}
        batch = make_batch(BATCH_BYTES, 1_000)
        frames = {
            "produce": produce_frame(WRITTEN, 0, batch=batch, acks=1),
            "fetch": fetch_frame(BATCH_BYTES),
        }
        configs = {"segment.bytes": str(64 << 20), "retention.bytes": str(128 << 20)}
        for door, pid in sides.values():
            for name, own in ((WRITTEN, configs), (READ, {})):
                create_topic(f"127.0.0.1:{door.port}", name, partitions=1, replicas=1, configs=own)
            ask(door, produce_frame(READ, 0, batch=batch, acks=1), pid, count=16)
        for step, frame in frames.items():
            costs: dict[str, list[float]] = {name: [] for name in sides}
            for _ in range(ROUNDS):
                for name, (door, pid) in sides.items():
                    costs[name].append(ask(door, frame, pid, seconds=ROUND_S)["cpu_us_per_request"])
            middle = {name: median(some) for name, some in costs.items()}
            ratio = round(middle["ruled"] / middle["open"], 3)
            say(step=step, rules=RULES, cpu_us=costs, median_us=middle, ratio=ratio)


def add_rules(bootstrap: str, options: dict[str, str]) -> None:
    """A client without a name may use both topics; the other rules are about other topics."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **options})
    rules = [
        rule(topic, operation)
        for topic in (WRITTEN, READ)
        for operation in (AclOperation.CREATE, AclOperation.READ, AclOperation.WRITE)
    ]
    rules += [rule(f"other-{number}", AclOperation.READ) for number in range(RULES)]
    for done in admin.create_acls(rules).values():
        done.result(60)


def rule(topic: str, operation: AclOperation) -> AclBinding:
    """One that allows it to a client without a name."""
    return AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL,
        "User:ANONYMOUS", "*", operation, AclPermissionType.ALLOW,
    )  # fmt: skip
