"""Makes, lists and removes users: names with passwords for SCRAM.

How:    the client salts the password, so it crosses no network.
Source: KIP-554; RFC 5802."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from strandline.client.cluster import Client
from strandline.client.errors import refusal
from strandline.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from strandline.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from strandline.security.sasl.secrets import HASHES, MECHANISM_NUMBERS, SALT_BYTES

_NUMBERS = {name: number for number, name in MECHANISM_NUMBERS.items()}


@dataclass(frozen=True, slots=True)
class User:
    """A user. `mechanisms`: {mechanism: iterations}."""

    name: str
    mechanisms: dict[str, int]


def set_password(
    client: Client, user: str, password: str, *, mechanisms: Sequence[str], iterations: int
) -> None:
    """Make a user, or give it another password. Raises ApiError."""
    request = AlterUserScramCredentialsRequest(
        upsertions=[_salted(user, password, one, iterations) for one in mechanisms]
    )
    _alter(client, request)


def remove_user(client: Client, user: str) -> None:
    """Remove all passwords of a user; connections that are open stay. Raises ApiError."""
    known = next((one for one in list_users(client) if one.name == user), None)
    mechanisms = ["SCRAM-SHA-256"] if known is None else list(known.mechanisms)
    deletions = [ScramCredentialDeletion(user, _NUMBERS[one]) for one in mechanisms]
    _alter(client, AlterUserScramCredentialsRequest(deletions=deletions))


def list_users(client: Client) -> list[User]:
    """All users, by name. Raises ApiError."""
    answer = client.ask_any(
        DescribeUserScramCredentialsRequest(users=None),
        DescribeUserScramCredentialsResponse,
        deadline_ms=client.deadline(),
    )
    if answer.error_code:
        raise refusal(answer.error_code, "the users", answer.error_message)
    return [
        User(
            one.user,
            {MECHANISM_NUMBERS[info.mechanism]: info.iterations for info in one.credential_infos},
        )
        for one in answer.results
    ]


def _salted(user: str, password: str, mechanism: str, iterations: int) -> ScramCredentialUpsertion:
    from scramp.utils import saslprep

    salt = secrets.token_bytes(SALT_BYTES)
    return ScramCredentialUpsertion(
        name=user,
        mechanism=_NUMBERS[mechanism],
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(
            HASHES[mechanism], saslprep(password).encode(), salt, iterations
        ),
    )


def _alter(client: Client, request: AlterUserScramCredentialsRequest) -> None:
    answer = client.ask_any(
        request, AlterUserScramCredentialsResponse, deadline_ms=client.deadline()
    )
    for one in answer.results:
        if one.error_code:
            raise refusal(one.error_code, f"user {one.user}", one.error_message)
