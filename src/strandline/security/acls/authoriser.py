"""The answer to "may this principal do that": allowed or denied.

How:    super user --> allowed
        a rule denies --> denied, whatever else allows
        a rule allows, by itself or because it includes the operation --> allowed
        rules cover the resource, none fits --> denied
        no rule covers the resource --> as `allow.everyone.if.no.acl.found` says
        Answers are kept for each principal and host; new rules empty them.
Owns:   the kept answers.
Source: Kafka 4.3's StandardAuthorizerData."""

from collections.abc import Iterable

from strandline.model.access import WILDCARD, Kind, Operation, PatternType, Permission, Rule
from strandline.security.acls.included import IMPLIED
from strandline.security.acls.rule_index import RuleIndex

KEPT_CALLERS_MAX = 10_000
"""Pairs of principal and host whose answers are kept."""
KEPT_ANSWERS_MAX = 100_000
"""Answers that are kept, of all pairs."""
KEPT_NAME_LENGTH_MAX = 255
"""Answers about resources with longer names are not kept: no topic has one, and a request may bring
many that are made up."""
_NO_SUCH_RESOURCE = "hardcode"
"""Kafka's name of a resource that no rule but a wildcard covers."""

_Question = tuple[Operation, Kind, str]


class RuleAuthoriser:
    """See the module."""

    def __init__(
        self,
        *,
        super_users: Iterable[str] = (),
        allows_without_rules: bool = False,
    ) -> None:
        self._super_users = frozenset(super_users)
        self._allows_without_rules = allows_without_rules
        self._region = ""
        self._index = RuleIndex()
        # {(principal, host): {question: answer}}.
        self._kept: dict[tuple[str, str], dict[_Question, bool]] = {}
        self._kept_count = 0

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
        self._kept_count = 0

    def allows(
        self, principal: str, host: str, operation: Operation, kind: Kind, name: str
    ) -> bool:
        """Whether the principal may do the operation with the resource."""
        answers = self._kept.get((principal, host))
        if answers is None:
            if len(self._kept) >= KEPT_CALLERS_MAX:
                self._forget()
            answers = self._kept[(principal, host)] = {}
        question = (operation, kind, name)
        answer = answers.get(question)
        if answer is None:
            answer = self._judge(principal, host, question)
            if len(name) <= KEPT_NAME_LENGTH_MAX:
                if self._kept_count >= KEPT_ANSWERS_MAX:
                    self._forget()
                    self._kept[(principal, host)] = answers = {}
                answers[question] = answer
                self._kept_count += 1
        return answer

    def allows_any(self, principal: str, host: str, operation: Operation, kind: Kind) -> bool:
        """Whether the principal may do the operation with some resource of the kind that may
        exist."""
        if self.allows(principal, host, operation, kind, _NO_SUCH_RESOURCE):
            return True
        allowed: list[Rule] = []
        denied_names: set[str] = set()
        denied_prefixes: list[str] = []
        for rule in self._index.of_kind(kind):
            if not rule.concerns(principal, host, self._region):
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

    def _judge(self, principal: str, host: str, question: _Question) -> bool:
        if principal in self._super_users:
            return True
        operation, kind, name = question
        is_covered = is_allowed = False
        for rule in self._index.covering(kind, name):
            is_covered = True
            if not rule.concerns(principal, host, self._region):
                continue
            if rule.permission is Permission.DENY:
                if rule.operation in (operation, Operation.ALL):
                    return False
            elif _permits(rule, operation):
                is_allowed = True
        return is_allowed if is_covered else self._allows_without_rules


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
