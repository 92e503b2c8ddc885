"""Which rules a request to describe or delete names.

Source: Kafka 4.3's ResourcePatternFilter and AccessControlEntryFilter."""

import msgspec

from strandline.model.access import WILDCARD, Kind, Operation, PatternType, Permission, Rule


class RuleFilter(msgspec.Struct, frozen=True):
    """A rule must fit every field; None and ANY fit all."""

    kind: Kind = Kind.ANY
    pattern: PatternType = PatternType.ANY
    name: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    @property
    def is_unknown(self) -> bool:
        """Whether a field has a number that this release does not know."""
        return 0 in (self.kind, self.pattern, self.operation, self.permission)

    def fits(self, rule: Rule) -> bool:
        """Whether the filter names this rule."""
        return (
            self.kind in (Kind.ANY, rule.kind)
            and self._fits_name(rule)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission in (Permission.ANY, rule.permission)
        )

    def _fits_name(self, rule: Rule) -> bool:
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, rule.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern is not PatternType.MATCH:
            return self.name == rule.name
        if rule.pattern is PatternType.PREFIXED:
            return self.name.startswith(rule.name)
        return rule.name in (self.name, WILDCARD)
