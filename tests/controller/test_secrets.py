"""Passwords of users: set, replaced, removed, each user as a whole.

Source: Kafka 4.3's ScramControlManager and its tests (KIP-554)."""

import msgspec
import pytest
from tests.controller.controller_world import World

from strandline.controller.user_commands import AlterSecrets, SecretDeletion, UserResults
from strandline.model.access import ScramSecret
from strandline.protocol.errors import Error

SECRET = ScramSecret("alice", "SCRAM-SHA-256", 4_096, b"salt", b"stored", b"server")
BOBS = msgspec.structs.replace(SECRET, user="bob")
OTHER = msgspec.structs.replace(SECRET, mechanism="SCRAM-SHA-512")


def change(world: World, *parts: ScramSecret | SecretDeletion) -> dict[str, int]:
    command = AlterSecrets(
        tuple(one for one in parts if isinstance(one, SecretDeletion)),
        tuple(one for one in parts if isinstance(one, ScramSecret)),
    )
    answer = world.run(command)
    assert isinstance(answer, UserResults)
    assert world.replayed().cluster.access == world.state.cluster.access
    return {one.user: one.error_code for one in answer.users}


def test_passwords_are_set_replaced_and_removed() -> None:
    world = World()
    assert change(world, SECRET, OTHER) == {"alice": 0}
    secrets = world.state.cluster.access.secrets
    assert set(secrets.values()) == {SECRET, OTHER}
    newer = msgspec.structs.replace(SECRET, salt=b"other")
    change(world, newer)
    assert secrets["alice", "SCRAM-SHA-256"] == newer
    assert change(world, SecretDeletion("alice", "SCRAM-SHA-512")) == {"alice": 0}
    assert set(secrets.values()) == {newer}


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (SecretDeletion("bob", "SCRAM-SHA-256"), Error.RESOURCE_NOT_FOUND),
        (SecretDeletion("bob", "MD5"), Error.UNSUPPORTED_SASL_MECHANISM),
        (
            msgspec.structs.replace(BOBS, mechanism="x"),
            Error.UNSUPPORTED_SASL_MECHANISM,
        ),
        (msgspec.structs.replace(SECRET, user=""), Error.UNACCEPTABLE_CREDENTIAL),
        (msgspec.structs.replace(SECRET, user="b" * 300), Error.UNACCEPTABLE_CREDENTIAL),
        (msgspec.structs.replace(SECRET, user="b\n"), Error.UNACCEPTABLE_CREDENTIAL),
        (
            msgspec.structs.replace(BOBS, iterations=4_095),
            Error.UNACCEPTABLE_CREDENTIAL,
        ),
        (
            msgspec.structs.replace(BOBS, iterations=16_385),
            Error.UNACCEPTABLE_CREDENTIAL,
        ),
        (msgspec.structs.replace(BOBS, salt=b""), Error.UNACCEPTABLE_CREDENTIAL),
        (
            msgspec.structs.replace(BOBS, stored_key=b""),
            Error.UNACCEPTABLE_CREDENTIAL,
        ),
    ],
)
def test_what_cannot_be_done_leaves_its_user_alone_and_no_other(
    part: ScramSecret | SecretDeletion, code: Error
) -> None:
    world = World()
    good = msgspec.structs.replace(SECRET, user=part.user, mechanism="SCRAM-SHA-512")
    assert change(world, part, good, SECRET) == {part.user: code, "alice": 0}
    assert list(world.state.cluster.access.secrets) == [("alice", "SCRAM-SHA-256")]


def test_a_password_cannot_be_changed_twice_in_one_request() -> None:
    world = World()
    change(world, SECRET)
    refused = {"alice": Error.DUPLICATE_RESOURCE}
    assert change(world, SecretDeletion("alice", "SCRAM-SHA-256"), SECRET) == refused
    assert change(world, SECRET, SECRET) == refused
    assert list(world.state.cluster.access.secrets.values()) == [SECRET]
