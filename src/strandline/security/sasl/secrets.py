"""The secrets of users, and made-up ones of unknown users.

Why:    a client must not find out which users exist: an unknown name gets a salt that stays the
        same, and fails where a wrong password does, after the same work.
How:    A made-up secret comes from the name and a key that this process draws at its start. Its
        mechanism, iterations and length of the salt are those of some real user: a client sees
        them, or the time that they take.
Source: RFC 5802, section 9; decision 0069."""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from strandline.model.access import ScramSecret
from strandline.security.sasl.iterations import ITERATIONS_DEFAULT

SALT_BYTES = 24
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""{mechanism: its hash}"""
MECHANISM_NUMBERS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""{Kafka's number: mechanism} (KIP-554)"""

Secrets = Mapping[tuple[str, str], ScramSecret]


class Shape(NamedTuple):
    """What of a secret a client that has no password notices."""

    mechanism: str
    iterations: int = ITERATIONS_DEFAULT
    salt_bytes: int = SALT_BYTES


class _Shapes(NamedTuple):
    """Those of the users that there are."""

    of_mechanism: dict[str, list[Shape]]
    """{mechanism: shapes of its secrets}"""
    of_any: list[Shape]
    """Shapes of the secrets that passwords are compared with."""


class SecretBook:
    """Finds the secret of a user; always finds one."""

    def __init__(
        self,
        present: Callable[[], Secrets],
        written: Secrets | None = None,
        *,
        version: Callable[[], int] = lambda: 0,
    ) -> None:
        """`present`: {(user, mechanism): secret} as of now; `written`: those that count if there is
        none; `version`: changes whenever `present` does."""
        self._present = present
        self._version = version
        # Those of the users at a version; taken anew once it has changed.
        self._shapes: tuple[int, _Shapes] | None = None
        self._written: Secrets = written or {}
        self._key = secrets.token_bytes(32)

    def find(self, user: str, mechanism: str) -> tuple[ScramSecret, bool]:
        """The secret of a user; and whether it is a real one."""
        known = self._known(user, mechanism)
        if known is not None:
            return known, True
        shapes = self._known_shapes().of_mechanism.get(mechanism, ())
        return self._made_up(user, self._choose(user, shapes) or Shape(mechanism)), False

    def find_any(self, user: str) -> tuple[ScramSecret, bool]:
        """The secret of a user for any mechanism; and whether it is a real one."""
        known = self._known_for_any(user)
        if known is not None:
            return known, True
        shape = self._choose(user, self._known_shapes().of_any) or Shape(next(iter(HASHES)))
        return self._made_up(user, shape), False

    def _known(self, user: str, mechanism: str) -> ScramSecret | None:
        one = (user, mechanism)
        return self._present().get(one) or self._written.get(one)

    def _known_for_any(self, user: str) -> ScramSecret | None:
        found = (self._known(user, mechanism) for mechanism in HASHES)
        return next((one for one in found if one is not None), None)

    def _known_shapes(self) -> _Shapes:
        version = self._version()
        if self._shapes is None or self._shapes[0] != version:
            secrets_of_all = {**self._written, **self._present()}
            of_mechanism: dict[str, set[Shape]] = {}
            for one in secrets_of_all.values():
                of_mechanism.setdefault(one.mechanism, set()).add(_shape(one))
            users = {user for user, _ in secrets_of_all}
            of_any = {_shape(one) for one in map(self._known_for_any, users) if one is not None}
            sorted_ones = {name: sorted(shapes) for name, shapes in of_mechanism.items()}
            self._shapes = version, _Shapes(sorted_ones, sorted(of_any))
        return self._shapes[1]

    def _choose(self, user: str, shapes: Sequence[Shape]) -> Shape | None:
        """One of them for a name, the same as long as it is among them."""
        return max(shapes, key=lambda one: self._drawn(repr(tuple(one)), user), default=None)

    def _drawn(self, what: str, user: str) -> bytes:
        text = f"{what} {user}".encode(errors="replace")
        return hmac.digest(self._key, text, "sha512")

    def _made_up(self, user: str, shape: Shape) -> ScramSecret:
        mechanism = shape.mechanism
        size = hashlib.new(HASHES[mechanism]).digest_size
        salt = self._drawn("salt", user) + self._drawn("more salt", user)
        return ScramSecret(
            user,
            mechanism,
            shape.iterations,
            salt[: shape.salt_bytes],
            secrets.token_bytes(size),
            secrets.token_bytes(size),
        )


def _shape(secret: ScramSecret) -> Shape:
    return Shape(secret.mechanism, secret.iterations, len(secret.salt))


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
