"""Passwords of users, set and removed: requests whose whole answers count.

Source: KIP-554."""

import hashlib
from collections.abc import Iterator

from differential.access.steps import Step
from strandline.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from strandline.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)

SHA_256, SHA_512 = 1, 2
NO_SUCH_MECHANISM = 99
SALT = b"0123456789abcdef"
ITERATIONS = 4_096
HASHES = {SHA_256: "sha256", SHA_512: "sha512"}


def upsertion(
    name: str,
    mechanism: int = SHA_256,
    *,
    iterations: int = ITERATIONS,
    salt: bytes = SALT,
    password: bytes | None = None,
) -> ScramCredentialUpsertion:
    """A password, salted as clients do it; the user's name, unless there is another one."""
    hashed = hashlib.pbkdf2_hmac(
        HASHES.get(mechanism, "sha256"), name.encode(), salt or b"x", ITERATIONS
    )
    return ScramCredentialUpsertion(
        name, mechanism, iterations, salt, hashed if password is None else password
    )


def deletion(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    """A password to remove."""
    return ScramCredentialDeletion(name, mechanism)


def described(*names: str) -> DescribeUserScramCredentialsRequest:
    """A request for the mechanisms of users; of all without a name."""
    users = [UserName(name) for name in names] if names else None
    return DescribeUserScramCredentialsRequest(users)


_One = ScramCredentialUpsertion | ScramCredentialDeletion
CHANGES: dict[str, tuple[_One, ...]] = {
    "nothing": (),
    "a user": (upsertion("ann"),),
    "its other mechanism": (upsertion("ann", SHA_512),),
    "the user again": (upsertion("ann", iterations=8_192),),
    "too few iterations": (upsertion("bob", iterations=4_095),),
    "no iterations": (upsertion("bob", iterations=0),),
    "iterations below none": (upsertion("bob", iterations=-1),),
    "the most iterations": (upsertion("bob", iterations=16_384),),
    "too many iterations": (upsertion("bob", iterations=16_385),),
    "no salt": (upsertion("carl", salt=b""),),
    "no password": (upsertion("carl", password=b""),),
    "a short password": (upsertion("carl", password=b"short"),),
    "no name": (upsertion(""),),
    "a name with a comma and an equals sign": (upsertion("a,b=c"),),
    "a name of another script": (upsertion("Łukasz"),),
    "mechanism UNKNOWN": (upsertion("dora", 0),),
    "a mechanism that is none": (upsertion("dora", NO_SUCH_MECHANISM),),
    "a user twice": (upsertion("emil"), upsertion("emil")),
    "a user by both mechanisms": (upsertion("emil"), upsertion("emil", SHA_512)),
    "set and removed at once": (upsertion("fred"), deletion("fred")),
    "set and removed by different mechanisms": (
        upsertion("emil", SHA_512),
        deletion("emil", SHA_256),
    ),
    "removed twice": (deletion("ann"), deletion("ann")),
    "an unknown user removed": (deletion("nobody"),),
    "an unknown mechanism removed": (deletion("bob", SHA_512),),
    "mechanism UNKNOWN removed": (deletion("bob", 0),),
    "no name removed": (deletion(""),),
    "some, one of them illegal": (
        upsertion("gina"),
        upsertion("hugo", iterations=1),
        deletion("nobody"),
    ),
    "a user removed": (deletion("ann", SHA_512),),
}
"""{what a change is: its parts}"""
QUESTIONS: dict[str, tuple[str, ...]] = {
    "all": (),
    "one": ("emil",),
    "an unknown one": ("nobody",),
    "one twice": ("emil", "emil"),
    "known and unknown": ("emil", "nobody", "gina"),
    "no name": ("",),
}


def steps() -> Iterator[Step]:
    """The requests, in turn."""
    for what, parts in CHANGES.items():
        request = AlterUserScramCredentialsRequest(
            [one for one in parts if isinstance(one, ScramCredentialDeletion)],
            [one for one in parts if isinstance(one, ScramCredentialUpsertion)],
        )
        yield Step(f"alter: {what}", request, 0)
    for number, (what, names) in enumerate(QUESTIONS.items()):
        yield Step(f"describe: {what}", described(*names), 0, settles=not number)
