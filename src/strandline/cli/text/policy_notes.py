"""Warnings about an accepted policy: values that no broker has.

Why:    a misspelt value may place data in the wrong place, and a command without a warning looks
        right.
Source: decision 0008; `placement.policy.unknown`."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from strandline.cli.output import print_line

if TYPE_CHECKING:
    from strandline.client.cluster import Client
    from strandline.placement.policy.document import Policy
    from strandline.placement.topology.universe import Candidate


def notes_on(policy: "Policy", candidates: "Iterable[Candidate]") -> list[str]:
    """Each a sentence without an end."""
    from strandline.placement.policy.unknown import unknown_values

    return [
        str(one) for one in unknown_values(policy, [(one.id, one.labels) for one in candidates])
    ]


def notes_on_changes(client: "Client", changes: Mapping[str, str | None]) -> list[str]:
    """The same for keys that a cluster has just accepted, of topics or the cluster. Empty if the
    cluster does not report its labels."""
    from strandline.base.errors import StrandlineError
    from strandline.client.operations.topology import describe_brokers
    from strandline.controller.placing.policies import (
        CLUSTER_POLICY_KEYS,
        TOPIC_POLICY_KEYS,
        policy_of,
    )
    from strandline.placement.policy.unknown import unknown_values

    given = {key: value for key, value in changes.items() if value}
    if not given.keys() & {*TOPIC_POLICY_KEYS, *CLUSTER_POLICY_KEYS}:
        return []
    try:
        policy = policy_of(given, given)
        if policy is None:
            return []
        brokers = describe_brokers(client, client.look_deadline())
    except StrandlineError:
        return []
    return [str(one) for one in unknown_values(policy[1], [(b.id, b.labels) for b in brokers])]


def tell_notes(notes: Iterable[str]) -> None:
    """A line for each."""
    for note in notes:
        print_line(f"note: {note}")
