"""`strandline drill cancel`: ends drills from any terminal, and removes what they made.

Why:    the terminal of the drill may be gone, and a region that is cut off is named by no metadata.
How:    the brokers that answer know where all brokers serve clients. Each broker is asked to end
        its drill; one that is cut off takes this request alone. Then drills' topics are deleted.
        A controller that was cut off may take the deletion and never decide it. So each broker has
        two seconds at first, and then as long as `--timeout` allows.
Source: docs/decisions/0019-drills.md; docs/operating/drills.md."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from strandline.base.json_value import Json
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import print_line, show

if TYPE_CHECKING:
    from strandline.client.cluster import Client
    from strandline.model.cluster import Address

ANSWER_MS = 2_000
THREADS_MAX = 64


def cancel(
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """End every drill: its brokers reconnect at once, and its topic is deleted. Works from any
    terminal, also if the command of the drill was killed."""
    from strandline.cli.drill.topics import SOON_MS
    from strandline.client.operations.cluster_status import ask_status

    with open_client(bootstrap, timeout) as client:
        brokers = {
            one.broker_id: (one.host, one.port)
            for answer in ask_status(client).answers.values()
            for one in answer.brokers
        }
        ended, silent = _end_all(client, brokers)
        topics = _drill_topics(client)
        if topics:
            with open_client(bootstrap, min(timeout, SOON_MS / 1000)) as soon:
                for topic in topics:
                    _delete(soon, client, topic)
    told: dict[str, Json] = {"ended": [*ended], "silent": [*silent], "topics_deleted": [*topics]}
    show(told, as_json=as_json, people=lambda: _tell(ended, silent, topics))


def _end_all(client: "Client", brokers: dict[int, tuple[str, int]]) -> tuple[list[int], list[int]]:
    """(brokers that were in a drill, brokers that do not answer)"""
    from strandline.base.errors import StrandlineError
    from strandline.client.operations.isolation import end_isolation
    from strandline.model.cluster import Address

    def end(address: "Address") -> bool | None:
        try:
            return end_isolation(client, address, timeout_ms=ANSWER_MS)
        except StrandlineError:
            return None

    ids = sorted(brokers)
    with ThreadPoolExecutor(min(len(ids), THREADS_MAX)) as threads:
        found = dict(
            zip(ids, threads.map(end, (Address(*brokers[one]) for one in ids)), strict=True)
        )
    ended = [one for one, was_in_drill in found.items() if was_in_drill]
    return ended, [one for one, was_in_drill in found.items() if was_in_drill is None]


def _drill_topics(client: "Client") -> list[str]:
    from strandline.cli.drill.topics import TOPIC_PREFIX

    return sorted(one for one in client.metadata(None).topics if one.startswith(TOPIC_PREFIX))


def _delete(soon: "Client", client: "Client", topic: str) -> None:
    """Delete it, unless the drill itself has done so meanwhile. `soon`: the client that gives up
    early."""
    from strandline.base.errors import StrandlineError
    from strandline.client.admin import delete_topic

    for one in (soon, client):
        try:
            delete_topic(one, topic)
            return
        except StrandlineError:
            if topic not in client.metadata(None).topics:
                return
            if one is client:
                raise


def _tell(ended: Sequence[int], silent: Sequence[int], topics: Sequence[str]) -> None:
    for one in ended:
        print_line(f"broker {one} is connected again")
    for one in silent:
        print_line(
            f"broker {one} does not answer: if it is in a drill, it reconnects by itself within "
            "10 minutes"
        )
    for name in topics:
        print_line(f"topic {name} is deleted")
    if not ended and not topics:
        print_line("no drill is under way")
