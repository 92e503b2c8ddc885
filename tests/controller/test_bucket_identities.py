"""Which bucket a name stands for is recorded once, and replaced on demand (decision 0068)."""

from tests.controller.controller_world import World

from strandline.controller.bucket_commands import BucketAnswer, IdentifyBucket
from strandline.controller.commands import Refused
from strandline.controller.records import decode_record, encode_record
from strandline.model.cluster import BucketIdentity
from strandline.protocol.errors import Error


def refusal(answer: object) -> str:
    assert isinstance(answer, Refused) and answer.error_code == Error.INVALID_REQUEST, answer
    return answer.message


def test_the_first_identity_of_a_bucket_is_kept_and_told_to_all() -> None:
    world = World()
    assert world.run(IdentifyBucket("east", "a")) == BucketAnswer("a", 0)
    assert world.run(IdentifyBucket("east", "b")) == BucketAnswer("a", 0)
    assert world.run(IdentifyBucket("east", "a")) == BucketAnswer("a", 0)
    assert world.state.cluster.buckets == {"east": BucketIdentity("a", 0)}


def test_one_bucket_never_has_two_names() -> None:
    world = World()
    world.run(IdentifyBucket("east", "a"))
    assert "it is bucket east" in refusal(world.run(IdentifyBucket("west", "a")))
    world.run(IdentifyBucket("west", "b"))
    assert "it is bucket east" in refusal(world.run(IdentifyBucket("west", "a", replaces="b")))
    assert set(world.state.cluster.buckets) == {"east", "west"}


def test_a_replacement_names_the_bucket_that_it_replaces() -> None:
    world = World()
    assert "has not used" in refusal(world.run(IdentifyBucket("east", "b", replaces="a")))
    world.run(IdentifyBucket("east", "a"))
    assert world.run(IdentifyBucket("east", "b", replaces="x")) == BucketAnswer("a", 0)
    assert world.run(IdentifyBucket("east", "b", replaces="a")) == BucketAnswer("b", 1)
    assert world.run(IdentifyBucket("east", "b", replaces="a")) == BucketAnswer("b", 1)
    assert "nothing to replace" in refusal(world.run(IdentifyBucket("east", "b", replaces="b")))
    assert world.run(IdentifyBucket("east", "a", replaces="b")) == BucketAnswer("a", 2)


def test_names_and_identities_have_bounds() -> None:
    world = World()
    for bucket, identity in (("", "a"), ("east", ""), ("e" * 101, "a"), ("east", "a" * 101)):
        assert "letters" in refusal(world.run(IdentifyBucket(bucket, identity)))
    assert not world.state.cluster.buckets


def test_an_earlier_release_reads_an_empty_change() -> None:
    """It ignores the field; a record that it writes has none."""
    old = b'{"kind":"configs_changed","scope":"cluster","name":"","values":{}}'
    record = decode_record(old)
    assert b'"identified":null' in encode_record(record)
