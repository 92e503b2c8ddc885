"""A cluster of brokers, and tier commands that a test proposes in place of an uploader."""

from dataclasses import replace

from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import produce
from tests.tiered.state.entries import entry

from strandline.model.ids import BrokerId, Epoch, Offset
from strandline.protocol.errors import Error
from strandline.replication.replica.replica import Replica
from strandline.replication.replica.tier import ReplicaTier
from strandline.tiered.state.commands import Command, GoLive, Intend, Retire
from strandline.tiered.state.encoding import encode
from strandline.tiered.state.transitions import Refusal

BUCKET = "eu"
Outcome = tuple[Error, Refusal | None]


def enable(world: ClusterWorld, **config: object) -> None:
    """Every replica of topic t has remote storage, and no local retention unless `config` says."""
    settings = {
        "remote_storage": True,
        "remote_buckets": (BUCKET,),
        "retention_ms": -1,
        "local_retention_ms": -1,
        **config,
    }
    for broker, replica in world.replicas_of("t").items():
        process = world.hosts[broker].process
        assert process is not None
        changed = replace(replica.log.config, **settings)  # type: ignore[arg-type]
        process.run_now(lambda replica=replica, changed=changed: replica.configure(changed))


def leader(world: ClusterWorld, topic: str = "t") -> Replica:
    """The replica that leads the topic."""
    return world.replicas_of(topic)[world.leader_of(topic)]


def tiers(world: ClusterWorld, topic: str = "t") -> dict[int, ReplicaTier]:
    """{broker: the tier of its replica}."""
    return {broker: replica.tier for broker, replica in world.replicas_of(topic).items()}


def begin(world: ClusterWorld, command: Command, *, at: int = 0, topic: str = "t") -> list[Outcome]:
    """Propose a command on a broker, or the leader; the outcome comes into the list."""
    broker = at or world.leader_of(topic)
    replica = world.replicas_of(topic)[broker]
    process = world.hosts[broker].process
    assert process is not None
    outcomes: list[Outcome] = []
    process.run_now(lambda: replica.tier.propose(command, lambda *one: outcomes.append(one)))
    return outcomes


def propose(world: ClusterWorld, command: Command, *, topic: str = "t") -> Outcome:
    """Propose a command on the leader, and wait for its outcome."""
    outcomes = begin(world, command, topic=topic)
    world.until(lambda: bool(outcomes))
    return outcomes[0]


def upload(
    world: ClusterWorld, base: int, end: int, *, bucket: str = BUCKET, topic: str = "t"
) -> None:
    """The records of [base, end) are in the bucket."""
    epochs = own_epochs(leader(world, topic), base, end)
    name = f"{base}-{end}"
    intent = Intend(bucket, name, Offset(base), Offset(end), BrokerId(1))
    confirmed = GoLive(bucket, entry(base, end, epochs=epochs))
    assert propose(world, intent, topic=topic) == (Error.NONE, None)
    assert propose(world, confirmed, topic=topic) == (Error.NONE, None)


def own_epochs(replica: Replica, base: int, end: int) -> tuple[tuple[int, int], ...]:
    """(epoch, its first offset in [base, end)) as the log has them."""
    log = replica.log
    found: dict[Epoch, int] = {}
    for offset in range(base, end):
        found.setdefault(log.epoch_of(log.index_of(Offset(offset))), offset)
    return tuple(found.items())


def retire(world: ClusterWorld, before: int) -> None:
    """The topic needs the records before this offset no more."""
    assert propose(world, Retire(BUCKET, Offset(before), 1)) == (Error.NONE, None)


def until_same(world: ClusterWorld, topic: str = "t") -> None:
    """Until every replica has the state of all markers."""
    index = leader(world, topic).tier.state.index
    world.until(lambda: all(one.state.index == index for one in tiers(world, topic).values()))
    assert len({encode(one.state.checkpoint()) for one in tiers(world, topic).values()}) == 1


def write_segments(world: ClusterWorld, count: int, *, records: int = 10) -> None:
    """Closed segments of so many records each, on every broker."""
    for _ in range(count):
        for _ in range(records):
            assert produce(world, "t", b"x").error_code == 0
        world.advance(1_000)
        for broker, replica in world.replicas_of("t").items():
            process = world.hosts[broker].process
            assert process is not None
            process.run_now(replica.log._roll)
