"""Records that change what principals may do, and their replay.

Source: decision 0069."""

from strandline.controller.records import AccessChanged, ConfigsChanged
from strandline.model.access import Access


def access_records(change: AccessChanged) -> tuple[ConfigsChanged, ...]:
    """The record of a change; none if it changes nothing."""
    if change == AccessChanged():
        return ()
    return (ConfigsChanged("cluster", "", {}, access=change),)


def change_access(access: Access, change: AccessChanged, *, version: int) -> None:
    """Apply a committed change; `version`: the cluster's after it."""
    for rule in change.rules_removed:
        access.rules.pop(rule, None)
    for rule in change.rules_added:
        access.rules[rule] = None
    for one in change.secrets_removed:
        access.secrets.pop(one, None)
    for secret in change.secrets_set:
        access.secrets[(secret.user, secret.mechanism)] = secret
    for quota in change.quotas:
        values = {**access.quotas.pop(quota.entity, {}), **quota.values}
        kept = {key: value for key, value in values.items() if value is not None}
        if kept:
            access.quotas[quota.entity] = kept
    access.version = version
