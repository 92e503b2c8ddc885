"""What tests of leaving and returning voters share: their topic, its voters, a write."""

from tests.broker.broker_world import batch_of
from tests.broker.moving_world import TOPIC, MovingWorld

from strandline.records.batch import read_header
from strandline.replication.leader.requests import AppendResult

CONFIGS = (("voters.shrink.enable", "true"), ("min.insync.replicas", "1"))
HOME = (3, 4, 5)


def votes(world: MovingWorld, *brokers: int) -> bool:
    """Whether these vote, and the controller knows it."""
    known = world.known
    return (
        set(known.voters) == set(brokers)
        and not known.pending
        and world.any_leader(lambda one: set(one.configuration.voters) == set(brokers))
    )


def append(
    world: MovingWorld, value: bytes, *, acks: int, at: int = 0, **options: int
) -> list[AppendResult]:
    """What the leader says to a batch, in the end; or `at`, where clients do not take it for the
    leader."""
    replica = world.replicas_of(TOPIC)[at or world.leader_of(TOPIC)]
    batch = batch_of(value, **options)
    answers: list[AppendResult] = []
    header = read_header(batch)
    assert header is not None
    replica.replicate([batch], [header], acks=acks, done=answers.append)
    return answers
