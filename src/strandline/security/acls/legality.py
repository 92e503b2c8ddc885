"""What is legal in a rule.

Source: Kafka 4.3's StandardAcl and AclControlManager.validateNewAcl."""

from strandline.model.access import (
    CLUSTER_NAME,
    REGION_HOST,
    Kind,
    Operation,
    PatternType,
    Permission,
    Rule,
)

EVERY_GROUP = "Group:*"
NAME_LENGTH_MAX = 1_024
"""Characters of a resource's name, a principal or a host."""


def why_illegal(rule: Rule) -> str | None:
    """Why a rule cannot be stored, in one sentence; None if it can."""
    if rule.kind in (Kind.UNKNOWN, Kind.ANY):
        return f"resource type {rule.kind.name}: a rule needs one kind of resource"
    if rule.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"pattern type {rule.pattern.name}: a rule's is LITERAL or PREFIXED"
    if rule.operation in (Operation.UNKNOWN, Operation.ANY):
        return f"operation {rule.operation.name}: a rule needs one operation, or ALL"
    if rule.permission not in (Permission.ALLOW, Permission.DENY):
        return f"permission {rule.permission.name}: a rule's is ALLOW or DENY"
    if not rule.name:
        return "the resource has no name"
    if rule.kind is Kind.CLUSTER and rule.name != CLUSTER_NAME:
        return f"the name of the resource of type CLUSTER is {CLUSTER_NAME}, not {rule.name!r}"
    principal_type, separator, principal_name = rule.principal.partition(":")
    if not (principal_type and separator and principal_name):
        return f"principal {rule.principal!r}: it has the form User:NAME or Group:NAME"
    if rule.principal == EVERY_GROUP:
        return f"principal {EVERY_GROUP}: no rule is of all groups; User:* is everyone"
    if not rule.host or rule.host == REGION_HOST:
        return "the host is empty: it is an address, * or region:NAME"
    for field in (rule.name, rule.principal, rule.host):
        if len(field) > NAME_LENGTH_MAX:
            return f"{field[:20]!r}... is longer than {NAME_LENGTH_MAX} characters"
    return None
