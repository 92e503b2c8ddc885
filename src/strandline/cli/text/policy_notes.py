"""Warnings about what was accepted: values of a policy that no broker has, and more replicas in
sync than there are.

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


def notes_on_min_insync(
    client: "Client", names: Iterable[str], values: Mapping[str, str | None] | None = None
) -> list[str]:
    """Topics that ask for more replicas in sync than they have. `values`: what they would be set
    to; default: what they are. Empty if the cluster does not answer."""
    from strandline.base.errors import StrandlineError
    from strandline.client.operations.configs import describe_configs
    from strandline.client.operations.observers import describe_observers
    from strandline.controller.placing.policies import MIN_INSYNC

    names = list(names)
    found = []
    try:
        observed = describe_observers(client, names)
        configs = describe_configs(client, names, (MIN_INSYNC,))
        for name in names:
            least = next(int(one.value) for one in configs[name] if one.name == MIN_INSYNC)
            if values is not None and values.get(MIN_INSYNC):
                least = int(values[MIN_INSYNC] or 0)
            voters = min(
                len(one.replicas)
                - (len(told.present) if (told := observed.get((name, one.index))) else 0)
                for one in client.topic(name).partitions
            )
            found += more_than_voters(f"topic {name}", least, voters)
    except (StrandlineError, ValueError, StopIteration):
        return []
    return found


def more_than_voters(what: str, least: int, voters: int) -> list[str]:
    """The note on so many replicas in sync of so many voters, where it is due."""
    if least <= voters:
        return []
    noun = "one replica" if voters == 1 else f"{voters} replicas"
    return [
        f"{what}: min.insync.replicas={least} is more than the {noun}: acks=all needs all of them, "
        "and is refused while one is down or behind"
    ]


def tell_notes(notes: Iterable[str]) -> None:
    """A line for each."""
    for note in notes:
        print_line(f"note: {note}")
