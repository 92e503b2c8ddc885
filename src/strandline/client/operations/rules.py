"""Adds, lists and removes rules of access.

Source: KIP-140, KIP-290."""

from collections.abc import Sequence

from strandline.client.cluster import Client
from strandline.client.errors import refusal
from strandline.model.access import Kind, Operation, PatternType, Permission, Rule
from strandline.protocol.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from strandline.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from strandline.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from strandline.security.acls.rule_filter import RuleFilter


def add_rules(client: Client, rules: Sequence[Rule]) -> None:
    """Add rules; those that are there already stay. Raises ApiError for the first that is refused:
    the others are added."""
    request = CreateAclsRequest([_creation(one) for one in rules])
    answer = client.ask_any(request, CreateAclsResponse, deadline_ms=client.deadline())
    for rule, result in zip(rules, answer.results, strict=True):
        if result.error_code:
            raise refusal(result.error_code, f"the rule on {rule.name}", result.error_message)


def list_rules(client: Client, wanted: RuleFilter) -> list[Rule]:
    """The rules that a filter names, in order. Raises ApiError."""
    request = DescribeAclsRequest(*_fields(wanted))
    answer = client.ask_any(request, DescribeAclsResponse, deadline_ms=client.deadline())
    if answer.error_code:
        raise refusal(answer.error_code, "the rules", answer.error_message)
    return [_rule(resource, one) for resource in answer.resources for one in resource.acls]


def remove_rules(client: Client, wanted: RuleFilter) -> list[Rule]:
    """Remove the rules that a filter names; which ones that were. Raises ApiError."""
    request = DeleteAclsRequest([DeleteAclsFilter(*_fields(wanted))])
    answers = client.ask_any(request, DeleteAclsResponse, deadline_ms=client.deadline())
    (answer,) = answers.filter_results
    if answer.error_code:
        raise refusal(answer.error_code, "the rules", answer.error_message)
    return [_rule(one, one) for one in answer.matching_acls]


def _creation(rule: Rule) -> AclCreation:
    return AclCreation(
        rule.kind,
        rule.name,
        rule.pattern,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission,
    )


def _rule(
    resource: DescribeAclsResource | DeleteAclsMatchingAcl,
    entry: AclDescription | DeleteAclsMatchingAcl,
) -> Rule:
    """A rule of an answer: what it is about, and what it says of that."""
    return Rule(
        Kind(resource.resource_type),
        PatternType(resource.pattern_type),
        resource.resource_name,
        entry.principal,
        entry.host,
        Operation(entry.operation),
        Permission(entry.permission_type),
    )


def _fields(
    wanted: RuleFilter,
) -> tuple[Kind, str | None, PatternType, str | None, str | None, Operation, Permission]:
    """The fields of a filter, in the order of Kafka's messages."""
    return (
        wanted.kind,
        wanted.name,
        wanted.pattern,
        wanted.principal,
        wanted.host,
        wanted.operation,
        wanted.permission,
    )
