"""One rule, and what is legal in it.

Source: Kafka 4.3's StandardAcl and AclControlManager.validateNewAcl."""

import msgspec

from strandline.security.acls.words import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Kind,
    Operation,
    PatternType,
    Permission,
)

NAME_LENGTH_MAX = 1_024
"""Characters of a resource's name, a principal or a host."""
REGION_HOST = "region:"
"""A host of `region:NAME` is every host, by way of the brokers of that region."""


class Rule(msgspec.Struct, frozen=True, order=True):
    """`principal` may, or may not, do `operation` from `host` with what the pattern covers."""

    kind: Kind
    pattern: PatternType
    name: str
    principal: str
    """`User:NAME`; `User:*` is everyone."""
    host: str
    """An address as the broker sees it, `*` for every one, or `region:NAME`: every address, but
    only by way of brokers of that region."""
    operation: Operation
    permission: Permission

    def concerns(self, principal: str, host: str, region: str) -> bool:
        """Whether the rule speaks of this principal from this host, by a broker of `region`."""
        if self.principal not in (principal, WILDCARD_PRINCIPAL):
            return False
        if self.host.startswith(REGION_HOST):
            return self.host[len(REGION_HOST) :] == region
        return self.host in (host, WILDCARD)

    def covers(self, name: str) -> bool:
        """Whether the pattern covers a resource of the rule's kind by its name."""
        if self.pattern is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


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
    if rule.kind is Kind.CLUSTER and rule.name not in (CLUSTER_NAME, WILDCARD):
        return f"the name of the resource of type CLUSTER is {CLUSTER_NAME}, not {rule.name!r}"
    principal_type, separator, principal_name = rule.principal.partition(":")
    if not (principal_type and separator and principal_name):
        return f"principal {rule.principal!r}: it has the form User:NAME"
    if not rule.host or rule.host == REGION_HOST:
        return "the host is empty: it is an address, * or region:NAME"
    for field in (rule.name, rule.principal, rule.host):
        if len(field) > NAME_LENGTH_MAX:
            return f"{field[:20]!r}... is longer than {NAME_LENGTH_MAX} characters"
    return None
