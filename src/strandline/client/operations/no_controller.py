"""Why no controller answers: which of its voters answer, which they hear, which to start.

Why:    without a majority of the controller's voters nothing can be decided, and an operator needs
        to know which machines to check.
How:    any broker that answers names the voters. The client asks each of them, with a short
        timeout, which brokers it hears.
Source: docs/operating/outages.md."""

from collections.abc import Collection, Mapping

from strandline.base.errors import StrandlineError
from strandline.client.brokers import Brokers
from strandline.client.operations.broker_configs import controller_voters
from strandline.client.wire.side_by_side import look_at_each
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_topology import (
    DescribeTopologyRequest,
    DescribeTopologyResponse,
)


def why_no_controller(client: Brokers) -> str:
    """One line; empty where that is not known, or enough voters answer and hear each other."""
    try:
        known = client.metadata(deadline_ms=client.look_deadline()).brokers
    except StrandlineError:
        return ""
    voters = controller_voters(client, known)
    if not voters:
        return ""
    answers = look_at_each(client, voters, DescribeTopologyRequest(), DescribeTopologyResponse)
    return tell(voters, {voter: _heard(answer) for voter, answer in answers.items()})


def tell(voters: Collection[BrokerId], heard: Mapping[BrokerId, Collection[BrokerId]]) -> str:
    """`heard`: {answering voter: the brokers that it hears}."""
    needed = len(voters) // 2 + 1
    together = {one: sorted({one, *others} & set(voters)) for one, others in heard.items()}
    hearing = next((one for one, some in together.items() if len(some) >= needed), None)
    silent = [one for one in sorted(voters) if one not in heard]
    verb = "answers" if len(heard) == 1 else "answer"
    found = f"no controller: {len(heard)} of {len(voters)} of its voters {verb}"
    if len(heard) < needed:
        missing = needed - len(heard)
        which = "start" if missing == len(silent) else f"start {missing} of"
        missed = ", ".join(map(str, silent))
        if hearing is not None:
            there = ", ".join(str(one) for one in silent if one in together[hearing])
            return (
                f"{found} here, {needed} are needed; broker {hearing} receives heartbeats from "
                f"broker {there}: check that it is healthy and reachable from here"
            )
        return f"{found}, {needed} are needed: {which} broker {missed}"
    if hearing is not None:
        return ""
    said = "; ".join(
        (
            f"broker {one} receives from "
            f"{', '.join(str(each) for each in others if each != one) or 'none'}"
        )
        for one, others in sorted(together.items())
    )
    return f"{found} but do not reach each other: repair the network between them ({said})"


def _heard(answer: DescribeTopologyResponse) -> frozenset[BrokerId]:
    """The brokers that the answering broker hears."""
    return frozenset(BrokerId(one.broker_id) for one in answer.brokers if one.is_alive)
