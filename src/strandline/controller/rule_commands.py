"""Commands about rules of access, and their answers; see `commands`.

Source: Kafka's CreateAcls and DeleteAcls (KIP-140)."""

import msgspec

from strandline.model.access import Rule
from strandline.security.acls.rule_filter import RuleFilter


class CreateRules(msgspec.Struct, frozen=True, tag=True):
    """Add rules of access, each for itself."""

    rules: tuple[Rule, ...]


class DeleteRules(msgspec.Struct, frozen=True, tag=True):
    """Remove the rules that these filters name."""

    filters: tuple[RuleFilter, ...]


class RuleResult(msgspec.Struct, frozen=True):
    """The result for one rule or filter; `removed`: the rules that a filter named."""

    error_code: int = 0
    message: str | None = None
    removed: tuple[Rule, ...] = ()


class RuleResults(msgspec.Struct, frozen=True, tag=True):
    """One result for each rule or filter of the command, in its order."""

    results: tuple[RuleResult, ...]
    error_code: int = 0
