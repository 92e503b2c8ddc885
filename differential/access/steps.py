"""A script: requests in turn by the super user, whose whole answers count.

How:    an answer becomes lines: its errors, its rules in words, what it says of users. The rules of
        a list are sorted."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from differential.access.subjects import ADMIN
from differential.access.walk import Target
from strandline.model.access import Kind, Operation, PatternType, Permission
from strandline.protocol.errors import name_of
from strandline.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
)
from strandline.protocol.messages.create_acls import CreateAclsResponse
from strandline.protocol.messages.delete_acls import DeleteAclsMatchingAcl, DeleteAclsResponse
from strandline.protocol.messages.describe_acls import DescribeAclsResponse
from strandline.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
)
from strandline.protocol.table import Message

PAUSES = 10
HUNG_UP = ["hangs up"]
Answers = dict[str, list[str]]
"""{label of a step: its answer as lines}"""


class Step(NamedTuple):
    """A request. `settles`: the broker may need a moment for what was changed before."""

    label: str
    request: Message
    version: int
    settles: bool = False


def play(target: Target, steps: Iterable[Step]) -> Answers:
    """The answers to a script."""
    answers: Answers = {}
    for one in steps:
        assert one.label not in answers, one.label
        for _ in range(PAUSES if one.settles else 0):
            target.pause()
        answer = target.ask(ADMIN, one.request, one.version)
        answers[one.label] = HUNG_UP if answer is None else _LINES[type(answer)](answer)
    return answers


def _created(answer: CreateAclsResponse) -> list[str]:
    return [name_of(one.error_code) for one in answer.results]


def _deleted(answer: DeleteAclsResponse) -> list[str]:
    lines = []
    for result in answer.filter_results:
        lines.append(name_of(result.error_code))
        lines += sorted(f"- {_rule(one)}" for one in result.matching_acls)
    return lines


def _described(answer: DescribeAclsResponse) -> list[str]:
    rules = [
        DeleteAclsMatchingAcl(
            0,
            None,
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            one.principal,
            one.host,
            one.operation,
            one.permission_type,
        )
        for resource in answer.resources
        for one in resource.acls
    ]
    return [name_of(answer.error_code), *sorted(map(_rule, rules))]


def _rule(one: DeleteAclsMatchingAcl) -> str:
    return (
        f"{Permission(one.permission_type).name} {one.principal!r} from {one.host!r}"
        f" {Operation(one.operation).name} {Kind(one.resource_type).name}"
        f" {PatternType(one.pattern_type).name} {one.resource_name!r}"
    )


def _altered(answer: AlterUserScramCredentialsResponse) -> list[str]:
    return sorted(f"{one.user!r} {name_of(one.error_code)}" for one in answer.results)


def _users(answer: DescribeUserScramCredentialsResponse) -> list[str]:
    lines = [
        f"{one.user!r} {name_of(one.error_code)}"
        + "".join(
            f" {info.mechanism}:{info.iterations}"
            for info in sorted(one.credential_infos, key=lambda info: info.mechanism)
        )
        for one in answer.results
    ]
    return [name_of(answer.error_code), *sorted(lines)]


_LINES: dict[type, Callable[..., list[str]]] = {
    CreateAclsResponse: _created,
    DeleteAclsResponse: _deleted,
    DescribeAclsResponse: _described,
    AlterUserScramCredentialsResponse: _altered,
    DescribeUserScramCredentialsResponse: _users,
}
