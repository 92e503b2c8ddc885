"""The answer to "may this principal do that": allowed or denied.

How:    super user --> allowed
        a rule denies --> denied, whatever else allows
        a rule allows, by itself or because it includes the operation --> allowed
        rules cover the resource, none fits --> denied
        no rule covers the resource --> as `allow.everyone.if.no.acl.found` says
        A rule of a group is one of each user in it. Answers are kept for each caller: the user, its
        groups and its host. New rules empty them.
Owns:   the kept answers.
Source: Kafka 4.3's StandardAuthorizerData."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from strandline.model.access import (
    GROUP_PREFIX,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Caller,
    Kind,
    Operation,
    PatternType,
    Permission,
    Rule,
)
from strandline.security.acls.included import IMPLIED
from strandline.security.acls.rule_index import RuleIndex

KEPT_CALLERS_MAX = 10_000
"""Callers whose answers are kept."""
KEPT_PRINCIPALS_MAX = 200_000
"""Users and groups of all callers whose answers are kept, about 20 MB."""
KEPT_ANSWERS_MAX = 100_000
"""Answers that are kept, of all callers."""
KEPT_NAME_LENGTH_MAX = 255
"""Answers about resources with longer names are not kept: no topic has one, and a request may bring
many that are made up."""
_NO_SUCH_RESOURCE = "hardcode"
"""Kafka's name of a resource that no rule but a wildcard covers."""

TOLD_GROUPS_MAX = 10
"""Groups that a verdict names."""

_Question = tuple[Operation, Kind, str]


class Verdict(NamedTuple):
    """An answer. `groups`: those whose rules decided, as no rule of the user itself did."""

    is_allowed: bool
    groups: tuple[str, ...] = ()


ALLOWED, DENIED = Verdict(is_allowed=True), Verdict(is_allowed=False)


class RuleAuthoriser:
    """See the module."""

    def __init__(
        self,
        *,
        super_users: Iterable[str] = (),
        allows_without_rules: bool = False,
    ) -> None:
        # Each caller is of User:*, which is no one's name.
        self._super_users = frozenset(super_users) - {WILDCARD_PRINCIPAL}
        self._allows_without_rules = allows_without_rules
        self._region = ""
        self._index = RuleIndex()
        # {caller: {question: answer}}.
        self._kept: dict[Caller, dict[_Question, Verdict]] = {}
        self._kept_count = 0
        self._kept_principals_count = 0

    def set_rules(self, rules: Iterable[Rule], *, region: str = "") -> None:
        """Judge by these rules from now on. `region`: that of this broker; "" if it has none."""
        self._region = region
        self._index = RuleIndex(rules)
        self._forget()

    @property
    def kept_count(self) -> int:
        """Answers that are kept."""
        return self._kept_count

    def _forget(self) -> None:
        self._kept.clear()
        self._kept_count = self._kept_principals_count = 0

    def judge(self, caller: Caller, operation: Operation, kind: Kind, name: str) -> Verdict:
        """Whether the caller may do the operation with the resource."""
        answers = self._kept.get(caller)
        if answers is None:
            if (
                len(self._kept) >= KEPT_CALLERS_MAX
                or self._kept_principals_count >= KEPT_PRINCIPALS_MAX
            ):
                self._forget()
            answers = self._kept[caller] = {}
            self._kept_principals_count += len(caller.principals)
        question = (operation, kind, name)
        answer = answers.get(question)
        if answer is None:
            answer = self._judge(caller, question)
            if len(name) <= KEPT_NAME_LENGTH_MAX:
                if self._kept_count >= KEPT_ANSWERS_MAX:
                    self._forget()
                    self._kept[caller] = answers = {}
                    self._kept_principals_count = len(caller.principals)
                answers[question] = answer
                self._kept_count += 1
        return answer

    def allows_any(self, caller: Caller, operation: Operation, kind: Kind) -> bool:
        """Whether the caller may do the operation with some resource of the kind that may
        exist."""
        if self.judge(caller, operation, kind, _NO_SUCH_RESOURCE).is_allowed:
            return True
        allowed: list[Rule] = []
        denied_names: set[str] = set()
        denied_prefixes: list[str] = []
        for rule in self._index.of_kind(kind):
            if not rule.concerns(caller, self._region):
                continue
            if rule.operation not in (operation, Operation.ALL):
                continue
            if rule.permission is Permission.ALLOW:
                allowed.append(rule)
            elif rule.pattern is PatternType.PREFIXED:
                denied_prefixes.append(rule.name)
            else:
                denied_names.add(rule.name)
        if WILDCARD in denied_names:
            return False
        return any(
            _is_left(rule, names=denied_names, prefixes=tuple(denied_prefixes)) for rule in allowed
        )

    def _judge(self, caller: Caller, question: _Question) -> Verdict:
        if not self._super_users.isdisjoint(caller.principals):
            return ALLOWED
        operation, kind, name = question
        is_covered = False
        allowing: set[str] = set()
        for rule in self._index.covering(kind, name):
            is_covered = True
            if not rule.concerns(caller, self._region):
                continue
            if rule.permission is Permission.DENY:
                if rule.operation in (operation, Operation.ALL):
                    return Verdict(False, _groups((rule.principal,)))
            elif _permits(rule, operation):
                allowing.add(rule.principal)
        if not is_covered:
            return ALLOWED if self._allows_without_rules else DENIED
        if not allowing:
            return DENIED
        groups = _groups(allowing)
        return Verdict(True, groups) if groups else ALLOWED


def _groups(principals: Collection[str]) -> tuple[str, ...]:
    """The groups among the principals of the rules that decided, if there are no others."""
    if not all(one.startswith(GROUP_PREFIX) for one in principals):
        return ()
    return tuple(sorted(one[len(GROUP_PREFIX) :] for one in principals)[:TOLD_GROUPS_MAX])


def _permits(rule: Rule, operation: Operation) -> bool:
    """Whether a rule that allows something allows this operation."""
    return rule.operation in (operation, Operation.ALL) or rule.operation in IMPLIED.get(
        operation, ()
    )


def _is_left(rule: Rule, *, names: set[str], prefixes: tuple[str, ...]) -> bool:
    """Whether denials of these names and prefixes leave something of what a rule allows."""
    if rule.pattern is PatternType.PREFIXED:
        return not rule.name.startswith(prefixes)
    return rule.name == WILDCARD or (rule.name not in names and not rule.name.startswith(prefixes))
