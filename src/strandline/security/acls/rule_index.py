"""The rules that concern a resource, without a look at the others.

Why:    a cluster may have tens of thousands of rules, and a first question of a session must not
        read all of them.
How:    literal names by a dictionary; prefixes by one dictionary, asked for each length that any
        prefix has.
Owns:   the rules."""

from collections.abc import Iterable, Iterator

from strandline.model.access import WILDCARD, Kind, PatternType, Rule


class RuleIndex:
    """See the module."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules: frozenset[Rule] = frozenset(rules)
        # {(kind, literal name): its rules}, {(kind, prefix): its rules}.
        self._literal: dict[tuple[Kind, str], list[Rule]] = {}
        self._prefixed: dict[tuple[Kind, str], list[Rule]] = {}
        # {kind: the lengths of its prefixes}.
        self._lengths: dict[Kind, set[int]] = {}
        for rule in self.rules:
            if rule.pattern is PatternType.PREFIXED:
                self._prefixed.setdefault((rule.kind, rule.name), []).append(rule)
                self._lengths.setdefault(rule.kind, set()).add(len(rule.name))
            else:
                self._literal.setdefault((rule.kind, rule.name), []).append(rule)

    def covering(self, kind: Kind, name: str) -> Iterator[Rule]:
        """Every rule whose pattern covers the resource."""
        yield from self._literal.get((kind, name), ())
        if name != WILDCARD:
            yield from self._literal.get((kind, WILDCARD), ())
        for length in self._lengths.get(kind, ()):
            if length <= len(name):
                yield from self._prefixed.get((kind, name[:length]), ())

    def of_kind(self, kind: Kind) -> Iterator[Rule]:
        """Every rule of a kind of resource."""
        return (rule for rule in self.rules if rule.kind is kind)
