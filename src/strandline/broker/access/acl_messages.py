"""Rules and filters in Kafka's messages.

Source: KIP-140, KIP-290."""

from enum import IntEnum
from typing import TypeVar

from strandline.model.access import Kind, Operation, PatternType, Permission, Rule
from strandline.protocol.messages.create_acls import AclCreation
from strandline.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsMatchingAcl
from strandline.protocol.messages.describe_acls import DescribeAclsRequest
from strandline.security.acls.rule_filter import RuleFilter

T = TypeVar("T", bound=IntEnum)


def rule_of(creation: AclCreation) -> Rule:
    """The rule to add; a number that this release does not know becomes UNKNOWN."""
    return Rule(
        kind=_known(Kind, creation.resource_type),
        pattern=_known(PatternType, creation.resource_pattern_type),
        name=creation.resource_name,
        principal=creation.principal,
        host=creation.host,
        operation=_known(Operation, creation.operation),
        permission=_known(Permission, creation.permission_type),
    )


def filter_of(wanted: DeleteAclsFilter | DescribeAclsRequest) -> RuleFilter:
    """The filter; a number that this release does not know becomes UNKNOWN."""
    return RuleFilter(
        kind=_known(Kind, wanted.resource_type_filter),
        pattern=_known(PatternType, wanted.pattern_type_filter),
        name=wanted.resource_name_filter,
        principal=wanted.principal_filter,
        host=wanted.host_filter,
        operation=_known(Operation, wanted.operation),
        permission=_known(Permission, wanted.permission_type),
    )


def removed_rule(rule: Rule) -> DeleteAclsMatchingAcl:
    """A rule that was removed."""
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=rule.kind,
        resource_name=rule.name,
        pattern_type=rule.pattern,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


def _known(words: type[T], number: int) -> T:
    try:
        return words(number)
    except ValueError:
        return words(0)
