"""Asks many brokers at the same time for what can be done without.

Why:    one that hangs takes its whole time; many of them would take theirs one after the other.
How:    a thread and a connection for each; the first request of a broker that is not answered soon
        is its last.
Source: design section 3."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from strandline.base.errors import StrandlineError
from strandline.client.brokers import LOOK_MS, Brokers
from strandline.model.ids import BrokerId
from strandline.protocol.table import Message

R = TypeVar("R", bound=Message)

THREADS_MAX = 64


def look_at_each(
    client: Brokers, brokers: Iterable[BrokerId], request: Message, response: type[R]
) -> dict[BrokerId, R]:
    """{broker: its answer}, of those that answer soon what all are asked."""
    found = look_side_by_side(client, dict.fromkeys(brokers, (request,)), response)
    return {broker: answers[0] for broker, answers in found.items() if answers}


def look_side_by_side(
    client: Brokers, requests: Mapping[BrokerId, Sequence[Message]], response: type[R]
) -> dict[BrokerId, list[R]]:
    """{broker: its answers, in the order of the requests}; fewer, or none, where it does not say
    soon. `requests`: {broker: what it is asked, one after the other}."""

    def ask(broker: BrokerId) -> list[R]:
        answers: list[R] = []
        try:
            connection = client.open_connection(broker, client.look_deadline())
        except StrandlineError:
            return answers
        try:
            for request in requests[broker]:
                answers.append(connection.call(request, response, LOOK_MS))
        except StrandlineError:
            pass
        finally:
            connection.close()
        return answers

    brokers = sorted(requests)
    if not brokers:
        return {}
    with ThreadPoolExecutor(min(len(brokers), THREADS_MAX)) as threads:
        return dict(zip(brokers, threads.map(ask, brokers), strict=True))
