"""A broker is answered where it is now, also one that was elsewhere before; that it comes back with
its disk in another machine, `tests/integration/test_declared_losses.py` shows."""

import asyncio
import logging
from types import SimpleNamespace

import msgspec
import pytest

from strandline.broker.operations.broker_registration import (
    BrokerRegistration,
    RegistrationStatus,
    answer_introductions,
)
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId

SENDER = BrokerId(5)


@pytest.mark.parametrize(
    ("peers", "is_connected", "is_learnt"),
    [([], False, True), ([SENDER], False, True), ([SENDER], True, False)],
)
def test_an_address_is_learnt_of_who_is_not_known_or_not_reached(
    peers: list[BrokerId], is_connected: bool, is_learnt: bool
) -> None:
    """A broker that is reached has not moved: another sender is not taken for it."""
    handlers, learned = [], []
    replication = SimpleNamespace(
        calls=SimpleNamespace(register=lambda _, handler: handlers.append(handler)),
        network=SimpleNamespace(is_connected=lambda *_: is_connected),
        peers=peers,
        set_peer=lambda *introduction: learned.append(introduction),
    )
    cluster = SimpleNamespace(version=7, brokers={SENDER: SimpleNamespace(rpc=Address("old", 9))})
    answer_introductions(replication, SimpleNamespace(cluster=cluster, voters=()))  # type: ignore[arg-type]
    introduction = msgspec.msgpack.encode(BrokerRegistration("new", 9))
    answer = msgspec.msgpack.decode(
        asyncio.run(handlers[0](SENDER, introduction)), type=RegistrationStatus
    )
    assert learned == ([(SENDER, "new", 9)] if is_learnt else [])
    assert (answer.version, answer.is_registered) == (7, True)


def test_two_brokers_of_one_id_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """The answer to the second one reaches the first: it cannot find out by itself."""
    handlers = []
    replication = SimpleNamespace(
        calls=SimpleNamespace(register=lambda _, handler: handlers.append(handler)),
        network=SimpleNamespace(is_connected=lambda *_: True),
        peers=[SENDER],
    )
    cluster = SimpleNamespace(version=7, brokers={SENDER: SimpleNamespace(rpc=Address("a", 9))})
    answer_introductions(replication, SimpleNamespace(cluster=cluster, voters=()))  # type: ignore[arg-type]
    with caplog.at_level(logging.ERROR):
        for host in ("a", "b", "b"):
            introduction = msgspec.msgpack.encode(BrokerRegistration(host, 9))
            asyncio.run(handlers[0](SENDER, introduction))
    assert [one.message for one in caplog.records] == [
        "two brokers have the id 5: the one at a:9 is a member, and the one at b:9 cannot join: "
        "give it another id"
    ]
