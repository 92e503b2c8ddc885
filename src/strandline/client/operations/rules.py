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
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from strandline.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from strandline.security.acls.rule_filter import RuleFilter


def add_rules(client: Client, rules: Sequence[Rule]) -> None:
    """Add rules; those that are there already stay. Raises ApiError for the first that is refused:
    the others are added."""
    request = CreateAclsRequest(
        [
            AclCreation(
                one.kind,
                one.name,
                one.pattern,
                one.principal,
                one.host,
                one.operation,
                one.permission,
            )
            for one in rules
        ]
    )
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
    return [
        Rule(
            Kind(resource.resource_type),
            PatternType(resource.pattern_type),
            resource.resource_name,
            one.principal,
            one.host,
            Operation(one.operation),
            Permission(one.permission_type),
        )
        for resource in answer.resources
        for one in resource.acls
    ]


def remove_rules(client: Client, wanted: RuleFilter) -> list[Rule]:
    """Remove the rules that a filter names; which ones that were. Raises ApiError."""
    request = DeleteAclsRequest([DeleteAclsFilter(*_fields(wanted))])
    answers = client.ask_any(request, DeleteAclsResponse, deadline_ms=client.deadline())
    (answer,) = answers.filter_results
    if answer.error_code:
        raise refusal(answer.error_code, "the rules", answer.error_message)
    return [
        Rule(
            Kind(one.resource_type),
            PatternType(one.pattern_type),
            one.resource_name,
            one.principal,
            one.host,
            Operation(one.operation),
            Permission(one.permission_type),
        )
        for one in answer.matching_acls
    ]


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
