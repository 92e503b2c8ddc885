"""The secrets of users, and made-up ones of unknown users.

Why:    a client must not find out which users there are: an unknown name gets a salt that stays the
        same, and fails where a wrong password does, after the same work.
How:    A made-up secret comes from the name and a key that this process draws at its start.
Source: RFC 5802, section 9; RFC 9051 has no better advice; decision 0069."""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping

from strandline.model.access import ScramSecret

ITERATIONS_DEFAULT = 8_192
ITERATIONS_MIN = 4_096
ITERATIONS_MAX = 16_384
SALT_BYTES = 24
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""{mechanism: its hash}"""
MECHANISM_NUMBERS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""{Kafka's number: mechanism} (KIP-554)"""

Secrets = Mapping[tuple[str, str], ScramSecret]


class SecretBook:
    """Finds the secret of a user; always finds one."""

    def __init__(self, present: Callable[[], Secrets], written: Secrets | None = None) -> None:
        """`present`: {(user, mechanism): secret} as of now; `written`: those that count if there is
        none."""
        self._present = present
        self._written: Secrets = written or {}
        self._key = secrets.token_bytes(32)

    def find(self, user: str, mechanism: str) -> tuple[ScramSecret, bool]:
        """The secret of a user; and whether it is a real one."""
        known = self._known(user, mechanism)
        if known is not None:
            return known, True
        return self._made_up(user, mechanism), False

    def find_any(self, user: str) -> tuple[ScramSecret, bool]:
        """The secret of a user for any mechanism; and whether it is a real one."""
        for mechanism in HASHES:
            known = self._known(user, mechanism)
            if known is not None:
                return known, True
        return self._made_up(user, next(iter(HASHES))), False

    def _known(self, user: str, mechanism: str) -> ScramSecret | None:
        one = (user, mechanism)
        return self._present().get(one) or self._written.get(one)

    def _made_up(self, user: str, mechanism: str) -> ScramSecret:
        name = HASHES[mechanism]
        size = hashlib.new(name).digest_size
        salt = hmac.digest(self._key, b"salt" + user.encode(errors="replace"), "sha256")
        return ScramSecret(
            user,
            mechanism,
            ITERATIONS_DEFAULT,
            salt[:SALT_BYTES],
            secrets.token_bytes(size),
            secrets.token_bytes(size),
        )


def secret_of(
    user: str, mechanism: str, salted_password: bytes, salt: bytes, iterations: int
) -> ScramSecret:
    """What a broker keeps of a salted password (RFC 5802, section 3)."""
    name = HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    return ScramSecret(
        user,
        mechanism,
        iterations,
        salt,
        hashlib.new(name, client_key).digest(),
        hmac.digest(salted_password, b"Server Key", name),
    )


def secret_from_password(
    user: str, mechanism: str, password: str, *, iterations: int = ITERATIONS_DEFAULT
) -> ScramSecret:
    """The secret of a new password: takes some milliseconds."""
    from scramp import ScramMechanism

    salt, stored_key, server_key, count = ScramMechanism(mechanism).make_auth_info(
        password, iteration_count=iterations, salt=secrets.token_bytes(SALT_BYTES)
    )
    return ScramSecret(user, mechanism, count, salt, stored_key, server_key)


def has_password(secret: ScramSecret, password: str) -> bool:
    """Whether the secret is of this password: takes some milliseconds."""
    from scramp import ScramMechanism

    _, stored_key, _, _ = ScramMechanism(secret.mechanism).make_auth_info(
        password, iteration_count=secret.iterations, salt=secret.salt
    )
    return hmac.compare_digest(stored_key, secret.stored_key)
