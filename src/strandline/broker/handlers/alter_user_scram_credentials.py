"""AlterUserScramCredentials: sets and removes passwords, salted by the client.

Source: KIP-554."""

from strandline.base.errors import ApiError
from strandline.broker.access.requirements import REFUSED
from strandline.broker.context import RequestContext
from strandline.controller.user_commands import AlterSecrets, SecretDeletion, UserResults
from strandline.model.access import CLUSTER_NAME, Kind, Operation, ScramSecret
from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialUpsertion,
)
from strandline.security.sasl.secrets import MECHANISM_NUMBERS, secret_of

UNKNOWN = "unknown"


async def handle(
    request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse:
    """Have the controller change each user, or refuse it."""
    command = AlterSecrets(
        tuple(
            SecretDeletion(one.name, MECHANISM_NUMBERS.get(one.mechanism, UNKNOWN))
            for one in request.deletions
        ),
        tuple(map(_secret, request.upsertions)),
    )
    try:
        if not context.may(Operation.ALTER, Kind.CLUSTER, CLUSTER_NAME):
            raise ApiError(Error.CLUSTER_AUTHORIZATION_FAILED, REFUSED)
        answer = await context.services.obtain(command, UserResults)
    except ApiError as error:
        names = [one.name for one in request.deletions]
        users = dict.fromkeys(names + [one.name for one in request.upsertions])
        return AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResult(user, error.code, error.message or None)
                for user in users
            ]
        )
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(one.user, one.error_code, one.message)
            for one in answer.users
        ]
    )


def _secret(one: ScramCredentialUpsertion) -> ScramSecret:
    mechanism = MECHANISM_NUMBERS.get(one.mechanism)
    if mechanism is None or not one.salted_password:
        return ScramSecret(one.name, mechanism or UNKNOWN, one.iterations, one.salt, b"", b"")
    return secret_of(one.name, mechanism, one.salted_password, one.salt, one.iterations)
