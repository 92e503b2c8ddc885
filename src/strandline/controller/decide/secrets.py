"""Sets and removes passwords of users.

How:    A user changes as a whole: one part that cannot be done leaves all of that user's alone.
Source: Kafka 4.3's ScramControlManager (KIP-554); decision 0069."""

from collections import Counter

from strandline.base.errors import ApiError
from strandline.controller.access import access_records
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.records import AccessChanged
from strandline.controller.user_commands import (
    AlterSecrets,
    SecretDeletion,
    UserResult,
    UserResults,
)
from strandline.model.access import ScramSecret
from strandline.protocol.errors import Error
from strandline.security.sasl.iterations import ITERATIONS_MAX, ITERATIONS_MIN
from strandline.security.sasl.secrets import HASHES

USER_LENGTH_MAX = 256
"""Characters of a user's name."""
SALT_BYTES_MAX = 256
SECRETS_MAX = 100_000
"""Passwords of a cluster: a broker keeps them in memory, about 500 bytes each."""
CHANGES_PER_COMMAND_MAX = 10_000


def decide_alter_secrets(facts: Facts, command: AlterSecrets) -> Decision:
    """Change each user, or refuse it."""
    parts: list[SecretDeletion | ScramSecret] = [*command.deletions, *command.upsertions]
    if len(parts) > CHANGES_PER_COMMAND_MAX:
        raise refuse(
            Error.POLICY_VIOLATION,
            f"one request may change {CHANGES_PER_COMMAND_MAX} passwords: send several",
        )
    named = Counter((one.user, one.mechanism) for one in parts)
    results: dict[str, UserResult] = {}
    for one in parts:
        results.setdefault(one.user, UserResult(one.user))
        if results[one.user].error_code:
            continue
        try:
            if named[one.user, one.mechanism] > 1:
                raise refuse(
                    Error.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request.",
                )
            _check(facts, one)
        except ApiError as error:
            results[one.user] = UserResult(one.user, error.code, error.message)
    refused = {user for user, result in results.items() if result.error_code}
    change = AccessChanged(
        secrets_set=tuple(one for one in command.upsertions if one.user not in refused),
        secrets_removed=tuple(
            (one.user, one.mechanism) for one in command.deletions if one.user not in refused
        ),
    )
    return Decision(UserResults(tuple(results.values())), access_records(change))


def _check(facts: Facts, part: SecretDeletion | ScramSecret) -> None:
    """Raise ApiError if the part cannot be done."""
    secrets = facts.state.cluster.access.secrets
    if not part.user:
        raise refuse(Error.UNACCEPTABLE_CREDENTIAL, "Username must not be empty.")
    if part.mechanism not in HASHES:
        raise refuse(Error.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism.")
    if isinstance(part, SecretDeletion):
        if (part.user, part.mechanism) not in secrets:
            raise refuse(
                Error.RESOURCE_NOT_FOUND,
                "Attempt to delete a user credential that does not exist.",
            )
        return
    if len(part.user) > USER_LENGTH_MAX or not part.user.isprintable():
        raise refuse(
            Error.UNACCEPTABLE_CREDENTIAL,
            f"Username must be at most {USER_LENGTH_MAX} printable characters.",
        )
    if not ITERATIONS_MIN <= part.iterations <= ITERATIONS_MAX:
        amount = "few" if part.iterations < ITERATIONS_MIN else "many"
        raise refuse(
            Error.UNACCEPTABLE_CREDENTIAL,
            f"Too {amount} iterations: {ITERATIONS_MIN} to {ITERATIONS_MAX} are allowed.",
        )
    if not 0 < len(part.salt) <= SALT_BYTES_MAX or not part.stored_key:
        raise refuse(Error.UNACCEPTABLE_CREDENTIAL, "The salt or the password is missing.")
    if len(secrets) >= SECRETS_MAX and (part.user, part.mechanism) not in secrets:
        raise refuse(Error.POLICY_VIOLATION, f"A cluster has {SECRETS_MAX} passwords at most.")
