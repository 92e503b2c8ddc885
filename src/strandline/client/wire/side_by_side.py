"""Sends optional requests to many brokers in parallel.

Why:    a broker that hangs takes its whole timeout; in sequence the timeouts would add up.
How:    a thread and a connection for each broker; after the first request without a quick answer
        the broker gets no more.
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
    """{broker: its answer}, for brokers that answer soon; all get the same request."""
    found = look_side_by_side(client, dict.fromkeys(brokers, (request,)), response)
    return {broker: answers[0] for broker, answers in found.items() if answers}


def look_side_by_side(
    client: Brokers, requests: Mapping[BrokerId, Sequence[Message]], response: type[R]
) -> dict[BrokerId, list[R]]:
    """{broker: its answers, in the order of the requests}; fewer, or none, if it does not answer
    soon. `requests`: {broker: its requests, sent one after the other}."""

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
