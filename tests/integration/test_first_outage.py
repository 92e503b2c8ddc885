"""The page of the first outage is typed line by line, on brokers as far apart as it says.

Source: docs/operating/first-outage.md."""

import json
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from tests.integration.conftest import DevCluster, run, wait_until
from tests.integration.ports import port_base
from tests.integration.walk import Step, Walk, agrees, code_of, steps

pytestmark = pytest.mark.integration

PAGE = "first-outage.md"
FIRST, LAST = "1. A cluster to break", "9. The regions return"
QUICK = ("2. Look first", "4. Look before you move")
"""Steps that wait for nothing."""
TOPICS, GROUP = ("orders", "payments"), "billing"


class Clients:
    """An application that writes to both topics and reads them as the group, until it is stopped.
    Its time-outs are short, as the page about outages says."""

    def __init__(self, bootstrap: str) -> None:
        self._client: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "socket.connection.setup.timeout.ms": 1000,
        }
        self.written: dict[str, set[bytes]] = {topic: set() for topic in TOPICS}
        self.read: dict[str, set[bytes]] = {topic: set() for topic in TOPICS}
        self._is_written, self._is_over = threading.Event(), threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._write, self._read)]
        for one in self._threads:
            one.start()

    def _write(self) -> None:
        producer = Producer({**self._client, "acks": "all", "socket.timeout.ms": 1000})
        number = 0
        while not self._is_written.wait(0.02):
            for topic in TOPICS:
                producer.produce(topic, b"%d" % number, on_delivery=self._on_delivery)
            producer.poll(0)
            number += 1
        producer.flush(30)

    def _on_delivery(self, error: object, message: object) -> None:
        if error is None:
            self.written[message.topic()].add(message.value())  # type: ignore[attr-defined]

    def _read(self) -> None:
        consumer = Consumer(
            {**self._client, "group.id": GROUP, "auto.offset.reset": "earliest",
             "session.timeout.ms": 6000}
        )  # fmt: skip
        consumer.subscribe(list(TOPICS))
        while not self._is_over.is_set():
            for one in consumer.consume(500, timeout=0.2):
                if one.error() is None:
                    self.read[one.topic()].add(one.value())
        consumer.close()

    def stop_writing(self) -> None:
        """Returns when each write is acknowledged, or given up."""
        self._is_written.set()
        self._threads[0].join()

    def stop(self) -> None:
        self.stop_writing()
        self._is_over.set()
        self._threads[1].join()


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Walk]:
    """After the first step of the page, which starts a cluster of the test's own."""
    directory = tmp_path / "cluster"
    first, *others = (one for one in steps(PAGE) if one.title == FIRST)
    command = shlex.split(*first.lines)[1:]
    told = run(*command, "--dir", str(directory), "--port-base", port_base(), "--json").stdout
    walk = Walk(DevCluster(directory, json.loads(told)["bootstrap"], {}))
    try:
        for step in others:
            walk.take(step)
        yield walk
    finally:
        walk.end()
        walk.cluster.dev("stop")


def test_the_first_look_and_the_look_before_a_move_are_as_shown(begun: Walk) -> None:
    for step in steps(PAGE):
        if step.title in QUICK:
            begun.take(step)


def test_the_whole_walk_shows_what_the_page_shows(begun: Walk) -> None:
    clients = Clients(begun.cluster.bootstrap)
    taken = []
    try:
        for step in steps(PAGE):
            if step.title != FIRST and step.lines != ("strandline dev stop",):
                begun.take(step)
                taken.append(step.title)
        # The topic whose majority came back lacks nothing; no loss was declared for it.
        clients.stop_writing()
        orders = clients.written["orders"]
        assert len(orders) > 500
        wait_until(lambda: orders <= clients.read["orders"], what="the group", timeout_s=60)
    finally:
        clients.stop()
    assert taken[-1] == LAST


def test_what_a_page_shows_is_compared() -> None:
    shown = ("A  B", "...", "c ... d", "")
    assert agrees("A B\nx\ny\nc 1 2 d\n\n", shown) and agrees("A   B\nc 1 d\n\n", shown)
    assert not agrees("A B\nc 1 e\n\n", shown) and not agrees("A B\nc 1 d\n\nmore\n", shown)
    assert code_of(("x", "error: no")) == 1 and code_of(("no: brokers",)) == 10
    assert code_of(("cluster", "", "DOWN")) == 10 and code_of(("yes: broker",)) == 0


def test_every_block_of_the_page_is_a_step() -> None:
    found: list[Step] = list(steps(PAGE))
    assert len({one.title for one in found}) == 9
    assert sum(1 for one in found if one.shown) > 20
