"""Adds and removes rules of access.

How:    Each rule to add is judged by itself; one that is there already is no error. Of filters, the
        rules that they name go at once: a filter that is not legal leaves the others alone.
Source: Kafka 4.3's AclControlManager (KIP-140, KIP-290); decision 0069."""

from strandline.controller.access import access_records
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.records import AccessChanged
from strandline.controller.rule_commands import CreateRules, DeleteRules, RuleResult, RuleResults
from strandline.model.access import Rule
from strandline.protocol.errors import Error
from strandline.security.acls.legality import why_illegal

RULES_MAX = 100_000
"""Rules of a cluster: a broker keeps them in memory, about 300 bytes each."""
RULES_PER_COMMAND_MAX = 10_000


def decide_create_rules(facts: Facts, command: CreateRules) -> Decision:
    """Add each legal rule."""
    if len(command.rules) > RULES_PER_COMMAND_MAX:
        raise refuse(
            Error.POLICY_VIOLATION,
            f"one request may add {RULES_PER_COMMAND_MAX} rules: send several",
        )
    present = facts.state.cluster.access.rules
    added: dict[Rule, None] = {}
    results: list[RuleResult] = []
    for rule in command.rules:
        reason = why_illegal(rule)
        if reason is not None:
            results.append(RuleResult(int(Error.INVALID_REQUEST), reason))
            continue
        if rule not in present and rule not in added:
            if len(present) + len(added) >= RULES_MAX:
                reason = f"a cluster has {RULES_MAX} rules at most: use prefixes, or remove some"
                results.append(RuleResult(int(Error.POLICY_VIOLATION), reason))
                continue
            added[rule] = None
        results.append(RuleResult())
    return Decision(
        RuleResults(tuple(results)), access_records(AccessChanged(rules_added=tuple(added)))
    )


def decide_delete_rules(facts: Facts, command: DeleteRules) -> Decision:
    """Remove the rules that the filters name; a rule that two of them name is in both results."""
    removed: dict[Rule, None] = {}
    results: list[RuleResult] = []
    for one in command.filters:
        if one.is_unknown:
            reason = "a field of the filter has a value that this release does not know"
            results.append(RuleResult(int(Error.INVALID_REQUEST), reason))
            continue
        named = tuple(rule for rule in facts.state.cluster.access.rules if one.fits(rule))
        removed |= dict.fromkeys(named)
        results.append(RuleResult(removed=named))
    if len(removed) > RULES_PER_COMMAND_MAX:
        raise refuse(
            Error.POLICY_VIOLATION,
            f"the filters name {len(removed)} rules; one request may remove "
            f"{RULES_PER_COMMAND_MAX}: use narrower filters",
        )
    change = AccessChanged(rules_removed=tuple(removed))
    return Decision(RuleResults(tuple(results)), access_records(change))
