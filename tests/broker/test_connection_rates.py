"""A broker, a listener and an address have no more new connections in a second than they may.

Source: KIP-612; decision 0070."""

import asyncio
from typing import cast

from tests.broker.connection_world import DEADLINE_S, ECHO, Client, World, run

from strandline.base.clock import Clock
from strandline.broker.quotas.address_rates import ADDRESSES_MAX, AddressRates
from strandline.broker.server.connection_rate import LOOK_AGAIN_MS, NO_RATE, ConnectionRate
from strandline.config.broker_life import CONNECTION_RATE, validate_life_config
from strandline.config.cluster import validate_cluster_config
from strandline.model.cluster import Cluster
from strandline.model.networks import canonical_host
from strandline.security.quotas.keys import CONNECTION_CREATION_RATE, IP


class Now:
    """A clock that the test moves."""

    ms = 1_000

    def monotonic_ms(self) -> int:
        return self.ms


def rates_of(quotas: dict[str | None, float]) -> tuple[AddressRates, Now, Cluster]:
    cluster, now = Cluster(), Now()
    cluster.access.quotas = {
        ((IP, name),): {CONNECTION_CREATION_RATE: rate} for name, rate in quotas.items()
    }
    return AddressRates(cluster, cast(Clock, now)), now, cluster


def accepted(rate: ConnectionRate, *, until_ms: int) -> int:
    """Connections within that time, if there are always more."""
    now_ms, count = 0, 0
    while now_ms < until_ms:
        wait_ms = rate.wait_ms(now_ms)
        if wait_ms:
            now_ms += wait_ms
        else:
            rate.take()
            count += 1
    return count


def test_a_rate_allows_a_second_s_worth_at_once_and_then_its_share() -> None:
    for per_s in (1, 7, 100):
        rate = ConnectionRate(lambda value=per_s: value, "k")  # type: ignore[misc]
        assert abs(accepted(rate, until_ms=10_000) - 11 * per_s) <= 1


def test_a_rate_of_zero_accepts_nothing_until_it_changes() -> None:
    now = [0]
    rate = ConnectionRate(lambda: now[0], "k")
    assert rate.wait_ms(0) == LOOK_AGAIN_MS
    now[0] = NO_RATE
    assert rate.wait_ms(1) == 0


def test_clients_beyond_the_rate_of_a_port_wait_and_are_served_later() -> None:
    per_s = [2]

    async def scenario(world: World) -> None:
        rate = ConnectionRate(lambda: per_s[0], "max.connection.creation.rate")
        await world.server.start("127.0.0.1", 0, rates=[rate])
        port = world.server._ports[1].port
        clients = []
        for number in range(4):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            clients.append(Client(reader, writer))
            clients[-1].send(ECHO, number)
        assert [(await one.receive())[0] for one in clients[:2]] == [0, 1]
        await world.settle()  # The other port has no such rate.
        assert world.server.delayed_accepts >= 1
        per_s[0] = NO_RATE
        assert [(await one.receive())[0] for one in clients[2:]] == [2, 3]
        for one in clients:
            await one.close()
        async with asyncio.timeout(DEADLINE_S):
            while world.server.connection_count:
                await asyncio.sleep(0)

    run(scenario)


def test_an_address_beyond_its_rate_is_delayed_and_another_is_not() -> None:
    rates, now, _ = rates_of({"10.0.0.1": 2})
    delays = [rates.delay_ms("10.0.0.1") for _ in range(100)]
    assert 20 <= delays.count(0) <= 24  # Ten seconds' worth, as of each quota.
    assert 0 < delays[-1] <= 1_000
    assert rates.delay_ms("10.0.0.2") == 0
    now.ms += 60_000
    assert rates.delay_ms("10.0.0.1") == 0


def test_refused_connections_do_not_count() -> None:
    """An address that goes on trying is served again as soon as its rate is below the quota."""
    rates, now, _ = rates_of({None: 1})
    served = 0
    for _ in range(600):
        served += not rates.delay_ms("10.0.0.1")
        now.ms += 100
    assert 60 <= served <= 72


def test_an_address_has_its_own_quota_or_the_default_one() -> None:
    rates, _, cluster = rates_of({None: 1, "::ffff:10.0.0.1": 50})
    assert [rates.delay_ms("10.0.0.1") for _ in range(500)].count(0) > 400
    assert [rates.delay_ms("10.0.0.2") for _ in range(500)].count(0) < 20
    cluster.access.quotas = {}
    cluster.access.version += 1
    assert rates.delay_ms("10.0.0.2") == 0


def test_addresses_are_one_in_all_spellings() -> None:
    assert canonical_host("::ffff:10.0.0.1") == canonical_host("10.0.0.1")
    assert canonical_host("0:0:0:0:0:0:0:1") == canonical_host("::1")
    assert canonical_host("x") == "x"


def test_addresses_that_are_remembered_have_a_bound() -> None:
    rates, _, _ = rates_of({None: 1})
    for number in range(ADDRESSES_MAX + 10):
        rates.delay_ms(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(rates._usages) == ADDRESSES_MAX


def test_a_connection_beyond_the_rate_of_its_address_is_closed_after_the_delay() -> None:
    class Strict:
        """Lets one connection in."""

        seen = 0

        def delay_ms(self, host: str) -> int:
            self.seen += 1
            return 0 if self.seen == 1 else 50

    async def scenario(world: World) -> None:
        world.server._admission._address_rates = cast(AddressRates, Strict())
        first, second = await world.connect(), await world.connect()
        first.send(ECHO, 1)
        assert (await first.receive())[0] == 1
        assert await second.is_closed()
        assert world.server.refused_connections["address-rate"] == 1
        assert not world.server._admission._delayed

    run(scenario)


def test_the_rate_of_a_broker_can_be_set_for_all_and_for_one() -> None:
    for validate in (validate_cluster_config, validate_life_config):
        assert validate(CONNECTION_RATE, "10") is None
        assert validate(CONNECTION_RATE, "-1") is not None
