"""Brokers forget one that was unregistered; if that is still alive, it learns of it.

Source: docs/decisions/0011-the-life-of-a-broker.md."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld, joined

from strandline.base.errors import UnregisteredError
from strandline.model.ids import BrokerId
from strandline.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

FOUR = BrokerId(4)
POLICY_VIOLATION, NOT_REGISTERED = 44, 102


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Three voters of the controller, and broker 4."""
    with joined(ClusterWorld()) as world:
        yield world


def unregister(world: ClusterWorld, broker: int, *, at: int = 2) -> tuple[int, str | None]:
    answer = world.ask(at, UnregisterBrokerRequest(broker), UnregisterBrokerResponse, 0)
    return answer.error_code, answer.error_message


def is_known(world: ClusterWorld, at: int) -> bool:
    return FOUR in world.broker(at).controller.cluster.brokers


def observers(world: ClusterWorld) -> tuple[BrokerId, ...]:
    (leader,) = (one for one in VOTERS if world.controller(one).is_leader)
    return world.controller(leader).configuration.observers


def test_it_is_refused_with_the_reason_and_then_done(cluster: ClusterWorld) -> None:
    assert unregister(cluster, 9) == (NOT_REGISTERED, "there is no broker 9")
    assert unregister(cluster, 4) == (POLICY_VIOLATION, "broker 4 is up: stop it first")
    code, message = unregister(cluster, 1, at=4)
    assert code == POLICY_VIOLATION and "vote in the controller" in str(message)
    cluster.create_topic("flights", replicas=4)
    cluster.hosts[4].kill()
    cluster.advance(5_000)
    code, message = unregister(cluster, 4)
    assert code == POLICY_VIOLATION and "holds 1 replica, flights-0" in str(message)


@pytest.mark.parametrize("is_disk_lost", [False, True])
def test_it_is_forgotten_and_a_later_start_with_its_id_joins_anew(
    cluster: ClusterWorld, is_disk_lost: bool
) -> None:
    cluster.hosts[4].kill()
    cluster.advance(5_000)
    assert unregister(cluster, 4) == (0, None)
    cluster.until(lambda: not any(is_known(cluster, one) for one in VOTERS))
    cluster.until(lambda: observers(cluster) == ())
    cluster.until(lambda: all(FOUR not in cluster.broker(one).replication.peers for one in VOTERS))
    if is_disk_lost:
        cluster.hosts[4].lose_disk()
        cluster.directory_ids[4] = "another"
    cluster.hosts[4].start()
    cluster.until_started(4)
    cluster.until(lambda: all(is_known(cluster, one) for one in VOTERS))
    cluster.until(lambda: observers(cluster) == (FOUR,))
    cluster.create_topic("later", replicas=4)
    assert 4 in cluster.replicas_of("later")
    marks = {one: cluster.controller(one) for one in cluster.hosts}
    cluster.until(lambda: len({one.high_watermark for one in marks.values()}) == 1)
    assert cluster.failures == {}


def test_one_that_was_only_cut_off_ends_when_it_is_back(cluster: ClusterWorld) -> None:
    for one in VOTERS:
        cluster.fabric.cut(FOUR, BrokerId(one))
        cluster.fabric.cut(BrokerId(one), FOUR)
    cluster.advance(5_000)
    assert unregister(cluster, 4) == (0, None)
    cluster.advance(20_000)
    assert is_known(cluster, 4) and cluster.failures == {}
    for one in VOTERS:
        cluster.fabric.heal(FOUR, BrokerId(one))
        cluster.fabric.heal(BrokerId(one), FOUR)
    cluster.until(lambda: 4 in cluster.failures)
    assert cluster.broker(4).is_unregistered
    assert cluster.failures[4] == "broker 4 was unregistered: start it again to join anew"
    cluster.hosts[4].kill()
    cluster.hosts[4].start()
    cluster.until_started(4)
    cluster.until(lambda: all(is_known(cluster, one) for one in VOTERS))


def test_a_start_that_no_person_wanted_does_not_join_anew(cluster: ClusterWorld) -> None:
    cluster.hosts[4].kill()
    cluster.advance(5_000)
    cluster.restarted.add(4)
    cluster.hosts[4].start()
    cluster.until_started(4)
    cluster.hosts[4].kill()
    cluster.advance(5_000)
    assert unregister(cluster, 4) == (0, None)
    cluster.hosts[4].start()
    cluster.until(cluster.starts[4].done)
    reason = str(cluster.starts[4].exception())
    assert isinstance(cluster.starts[4].exception(), UnregisteredError)
    assert reason == "broker 4 was unregistered: start it again to join anew"
    cluster.hosts[4].kill()
    cluster.advance(5_000)
    assert not any(is_known(cluster, one) for one in VOTERS)
    cluster.restarted.clear()
    cluster.hosts[4].start()
    cluster.until_started(4)


def test_one_that_nobody_unregistered_goes_on_without_a_controller(cluster: ClusterWorld) -> None:
    for one in VOTERS:
        cluster.hosts[one].kill()
    cluster.advance(30_000)
    for one in VOTERS:
        cluster.hosts[one].start()
    cluster.until_started(*VOTERS)
    cluster.advance(30_000)
    assert cluster.failures == {} and is_known(cluster, 1)
