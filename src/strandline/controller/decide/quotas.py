"""Sets and removes quotas of users, client ids and addresses.

How:    An entity changes as a whole: one value that is not legal leaves all of them alone. A quota
        that is removed and was not there is no error, whatever its key.
Source: Kafka 4.3's ClientQuotaControlManager (KIP-546); decision 0070."""

from strandline.controller.access import access_records
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.quota_commands import (
    AlterQuotas,
    QuotaAlteration,
    QuotaResult,
    QuotaResults,
)
from strandline.controller.records import AccessChanged, QuotaSet
from strandline.model.access import QuotaEntity
from strandline.protocol.errors import Error
from strandline.security.quotas.entities import entity_of, why_illegal, why_illegal_value

ENTITIES_MAX = 100_000
"""Entities with quotas of a cluster: a broker keeps them in memory, about 500 bytes each."""
CHANGES_PER_COMMAND_MAX = 10_000


def decide_alter_quotas(facts: Facts, command: AlterQuotas) -> Decision:
    """Change each entity, or refuse it."""
    if sum(max(1, len(one.changes)) for one in command.alterations) > CHANGES_PER_COMMAND_MAX:
        raise refuse(
            Error.POLICY_VIOLATION,
            f"one request may change {CHANGES_PER_COMMAND_MAX} quotas: send several",
        )
    present = facts.state.cluster.access.quotas
    changed: dict[QuotaEntity, QuotaSet] = {}
    seen: set[QuotaEntity] = set()
    results: list[QuotaResult] = []
    new_count = 0
    for alteration in command.alterations:
        reason = _why_refused(alteration, seen)
        if reason is not None:
            results.append(QuotaResult(int(Error.INVALID_REQUEST), reason))
            continue
        entity = entity_of(alteration.entity)
        seen.add(entity)
        before = present.get(entity, {})
        values = {key: value for key, value in alteration.changes if before.get(key) != value}
        if not before and values:
            new_count += 1
            if len(present) + new_count > ENTITIES_MAX:
                reason = f"a cluster has {ENTITIES_MAX} entities with quotas at most: use defaults"
                results.append(QuotaResult(int(Error.POLICY_VIOLATION), reason))
                continue
        if values:
            changed[entity] = QuotaSet(entity, values)
        results.append(QuotaResult())
    made = () if command.is_validation else tuple(changed.values())
    return Decision(QuotaResults(tuple(results)), access_records(AccessChanged(quotas=made)))


def _why_refused(alteration: QuotaAlteration, seen: set[QuotaEntity]) -> str | None:
    """Why an entity cannot be changed so, in one sentence. `seen`: entities changed before."""
    reason = why_illegal(alteration.entity)
    if reason is not None:
        return reason
    entity = entity_of(alteration.entity)
    if entity in seen:
        return "An entity cannot be altered twice in the same request."
    keys: set[str] = set()
    for key, value in alteration.changes:
        if key in keys:
            return f"Duplicate quota key {key[:100]} not allowed for one entity"
        keys.add(key)
        if value is not None:
            reason = why_illegal_value(entity, key, value)
            if reason is not None:
                return reason
    return None
