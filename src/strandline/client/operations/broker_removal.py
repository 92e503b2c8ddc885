"""Progress of decommissions and maintenance.

How:    the balancer reports the work left; Metadata reports leaders.
Source: docs/decisions/0011-the-life-of-a-broker.md."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from strandline.base.errors import OperatorError
from strandline.client.cluster import Client
from strandline.client.operations.balance import describe_balance
from strandline.client.operations.broker_configs import controller_voters
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_balance import DescribeBalanceResponse
from strandline.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

_GONE = ("down", "lost")
"""Conditions of a broker that does not run."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """Why some of a broker's replicas do not move now: a reason code, words, and how many."""

    code: str
    text: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Leaving:
    """A broker that is being decommissioned. `replicas`: what it holds still; `moving` of those are
    on their way; `condition`: up, settling, down, lost."""

    broker: BrokerId
    condition: str
    replicas: int
    moving: int
    stuck: tuple[Stuck, ...]
    vote: str
    """Why it waits to leave for good, if it votes in the controller; empty if it has no vote."""

    @property
    def is_empty(self) -> bool:
        """Whether it may be stopped for good."""
        return self.replicas == 0 and not self.vote


@dataclass(frozen=True, slots=True)
class Maintained:
    """A broker in maintenance until `until_ms` after 1970, or without end (-1). `leads`:
    partitions that it still leads."""

    broker: BrokerId
    condition: str
    until_ms: int
    leads: int


@dataclass(frozen=True, slots=True)
class Lives:
    """Brokers in decommission or maintenance, by id."""

    leaving: tuple[Leaving, ...]
    maintained: tuple[Maintained, ...]


def unregister_broker(client: Client, broker: BrokerId) -> None:
    """Take a broker off the cluster that is empty, and stopped for good."""
    client.ask_controller(
        UnregisterBrokerRequest(broker), UnregisterBrokerResponse, f"broker {broker}"
    )


def describe_lives(client: Client) -> Lives:
    """Brokers being decommissioned, with their progress, and brokers in maintenance, with what
    they lead."""
    found = describe_balance(client)
    topics = client.metadata(None).topics.values()
    led = Counter(one.leader for topic in topics for one in topic.partitions)
    return Lives(_leaving(client, found), _maintained(found, led))


def require_unregistrable(client: Client, host: str, brokers: Collection[BrokerId]) -> None:
    """Raises OperatorError if one of the brokers of a machine is up, holds replicas, or votes in
    the controller: then the cluster forgets none of them."""
    known = {one.broker_id: one for one in describe_balance(client).brokers}
    rows = [known[one] for one in sorted(brokers) if one in known]
    what = f"--host {host}:"
    if holding := [one for one in rows if one.replica_count]:
        held = sum(one.replica_count for one in holding)
        raise OperatorError(
            f"{what} {_brokers(one.broker_id for one in holding)} still "
            f"{'holds' if len(holding) == 1 else 'hold'} {held} "
            f"{'replica' if held == 1 else 'replicas'}: `strandline broker decommission --host "
            f"{host}`, and wait until `strandline broker status` says that each is empty"
        )
    if votes := votes_of(client, brokers):
        raise OperatorError(f"{what} {next(iter(votes.values()))}")
    if up := [one.broker_id for one in rows if one.condition not in _GONE]:
        raise OperatorError(
            f"{what} {_brokers(up)} {'is' if len(up) == 1 else 'are'} up: stop the machine's "
            "supervisor first"
        )


def votes_of(client: Client, brokers: Collection[BrokerId]) -> dict[BrokerId, str]:
    """{broker: see `why_it_votes`} of those with a vote; the brokers that are up name the
    voters."""
    voters = controller_voters(client, client.metadata().brokers)
    return {one: why_it_votes(one, voters) for one in sorted(brokers) if one in voters}


def _brokers(numbers: Iterable[int]) -> str:
    found = [str(one) for one in numbers]
    return f"{'broker' if len(found) == 1 else 'brokers'} {','.join(found)}"


def why_it_votes(broker: BrokerId, voters: Collection[BrokerId]) -> str:
    """Why this broker cannot leave for good yet, if it is one of the controller's `voters`: one
    line, and what to do. Empty if it has no vote."""
    if broker not in voters:
        return ""
    if len(voters) == 1:
        return (
            f"broker {broker} is the controller's only voter and keeps its vote: to replace its "
            f"machine, start broker {broker} on the new one with its data directory"
        )
    return (
        f"broker {broker} votes in the controller until another broker has taken its vote: if this "
        "lasts, add a broker, and name present voters in `cluster.seeds` of every broker's file"
    )


def _leaving(client: Client, found: DescribeBalanceResponse) -> tuple[Leaving, ...]:
    if not any(one.is_leaving for one in found.brokers):
        return ()
    voters = controller_voters(client, client.metadata().brokers)
    return tuple(
        Leaving(
            broker=BrokerId(one.broker_id),
            condition=one.condition,
            replicas=one.replica_count,
            moving=one.moving_count,
            stuck=tuple(
                Stuck(wait.code, wait.text, left.count)
                for wait in found.waits
                for left in wait.leaving
                if left.broker_id == one.broker_id
            ),
            vote=why_it_votes(BrokerId(one.broker_id), voters),
        )
        for one in found.brokers
        if one.is_leaving
    )


def _maintained(found: DescribeBalanceResponse, led: Counter[BrokerId]) -> tuple[Maintained, ...]:
    return tuple(
        Maintained(
            broker=BrokerId(one.broker_id),
            condition=one.condition,
            until_ms=one.maintenance_until_ms,
            leads=led[BrokerId(one.broker_id)],
        )
        for one in found.brokers
        if one.maintenance_until_ms
    )
