"""Brings the quotas of clients back.

Why:    without them a client that was limited would take the new cluster from the others.
How:    They come last: the restore itself is a client.
Source: decisions 0063 and 0070."""

from collections.abc import Callable

from strandline.base.errors import ApiError
from strandline.client.cluster import Client
from strandline.client.operations.quotas import alter_quotas
from strandline.client.restore.plan import RestorePlan
from strandline.protocol.errors import Error

ENTITIES_PER_REQUEST = 1_000


def restore_quotas(client: Client, plan: RestorePlan, *, say: Callable[[str], None]) -> None:
    """Set the quotas that the lost cluster had. Raises ApiError, but not for a quota that this
    cluster does not know."""
    quotas = list(plan.quotas.items())
    what = "quotas"
    for first in range(0, len(quotas), ENTITIES_PER_REQUEST):
        try:
            alter_quotas(client, dict(quotas[first : first + ENTITIES_PER_REQUEST]))
        except ApiError as error:
            if error.code != Error.INVALID_REQUEST:
                raise
            what = "all others"
            say(f"quotas are left out: {error.message}")
    if quotas:
        say(f"{what} of {len(quotas)} users and client ids are back")
