"""The command about passwords of users, and its answer; see `commands`.

Source: Kafka's AlterUserScramCredentials (KIP-554)."""

import msgspec

from strandline.model.access import ScramSecret


class SecretDeletion(msgspec.Struct, frozen=True):
    """A password to remove. An unknown mechanism is refused."""

    user: str
    mechanism: str


class AlterSecrets(msgspec.Struct, frozen=True, tag=True):
    """Set and remove passwords, each user as a whole or not at all."""

    deletions: tuple[SecretDeletion, ...] = ()
    upsertions: tuple[ScramSecret, ...] = ()


class UserResult(msgspec.Struct, frozen=True):
    """The result for one user."""

    user: str
    error_code: int = 0
    message: str | None = None


class UserResults(msgspec.Struct, frozen=True, tag=True):
    """One result for each user of the command, in the order in which it names them."""

    users: tuple[UserResult, ...]
    error_code: int = 0
