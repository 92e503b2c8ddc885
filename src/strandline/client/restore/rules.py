"""Brings the rules of access back.

Why:    topics without their rules would be open to nobody, or to the wrong users.
Source: decisions 0063 and 0069."""

from collections.abc import Callable

from strandline.base.errors import ApiError
from strandline.client.cluster import Client
from strandline.client.operations.rules import add_rules
from strandline.client.restore.plan import RestorePlan
from strandline.protocol.errors import Error


def restore_rules(client: Client, plan: RestorePlan, *, say: Callable[[str], None]) -> None:
    """Add the rules that the lost cluster had; those that are there stay. Raises ApiError."""
    if plan.rules:
        try:
            add_rules(client, plan.rules)
            say(f"{len(plan.rules)} rules of access are back")
        except ApiError as error:
            if error.code != Error.SECURITY_DISABLED:
                raise
            say(
                f"{len(plan.rules)} rules of access are left out: this cluster enforces none "
                "([access] enforce_rules)"
            )
    if plan.users:
        say(f"give these users passwords (strandline user create): {', '.join(plan.users)}")
