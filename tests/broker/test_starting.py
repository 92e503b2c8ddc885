"""What a starting broker may do before the controller knows of this start.

Source: docs/decisions/0027-declared-losses.md ("The gate"); `broker.groups.hosting`."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import BROKERS, ClusterWorld, joined

from strandline.base.errors import ApiError
from strandline.broker.coordinators.controller_host import SUBMIT_TIMEOUT_MS, ControllerHost
from strandline.controller.commands import Answer, Command, RegisterBroker
from strandline.controller.records import BrokerRegistered, Record
from strandline.protocol.errors import Error

LATE = 4


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Four brokers that have joined."""
    with joined(ClusterWorld()) as world:
        yield world


def test_no_group_is_opened_before_this_start_is_replayed(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create_topic("t", replicas=4)
    submit = ControllerHost.submit
    held = {LATE}

    async def hold(
        self: ControllerHost, command: Command, *, timeout_ms: int = SUBMIT_TIMEOUT_MS
    ) -> Answer:
        if isinstance(command, RegisterBroker) and command.broker in held:
            await self._sleep(100)
            raise ApiError(Error.REQUEST_TIMED_OUT, "held back")
        return await submit(self, command, timeout_ms=timeout_ms)

    monkeypatch.setattr(ControllerHost, "submit", hold)
    cluster.hosts[LATE].kill()
    cluster.advance(2_000)
    cluster.hosts[LATE].start()
    known = cluster.broker(1).controller.cluster
    cluster.until(lambda: cluster.broker(LATE).controller.cluster.version == known.version)
    cluster.advance(3_000)
    assert LATE in cluster.broker(LATE).controller.cluster.brokers  # As of its start before.
    assert LATE not in cluster.replicas_of("t")
    held.clear()
    cluster.until_started(LATE)
    assert LATE in cluster.replicas_of("t")


def test_who_joins_while_the_controller_s_members_change_waits_for_that_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One change is under way at a time; the other joins when it is over, not with the upkeep."""
    monkeypatch.setattr("tests.broker.cluster_world.CLEAN_INTERVAL_MS", 300_000)
    world = ClusterWorld((*BROKERS, LATE + 1))
    world.hosts[LATE + 1].kill()
    world.until_started(*BROKERS)
    leader = next(one for one in BROKERS if world.controller(one).is_leader)
    replica = world.controller(leader)

    def begin_another(record: Record) -> None:
        if isinstance(record, BrokerRegistered) and record.id == LATE + 1:
            present = replica.configuration
            replica.change_configuration(
                voters=present.voters, observers=present.observers, min_insync=2
            )

    world.broker(leader).controller.on_applied.append(begin_another)
    world.hosts[LATE + 1].start()
    world.advance(10_000)
    assert world.starts[LATE + 1].done()
    assert replica.configuration.min_insync == 2
    assert replica.configuration.observers == (LATE, LATE + 1)
    world.close()
