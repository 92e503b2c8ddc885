"""A broker returns without its disk under the same id; a second broker of an id is refused.

Source: reliability reference 1b (a wiped follower that votes); `ControllerState.has_lost`."""

from collections.abc import Iterable, Iterator

import pytest
from tests.broker.cluster_world import ClusterWorld, joined
from tests.broker.test_broker_in_a_cluster import fetch, produce

from strandline.config.broker_life import MAINTENANCE, NO_END
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    Refused,
    RegisterBroker,
    ResourceChanges,
    ResourceType,
)
from strandline.controller.reports import Question, Reports
from strandline.model.cluster import Broker
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.simulation.disk.directory_tree import DirectoryTree

NOT_A_VOTER = 4


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Four brokers that have joined."""
    with joined(ClusterWorld()) as world:
        yield world


def lose_disk(world: ClusterWorld, broker: int) -> None:
    """Kill a broker, and give it an empty disk."""
    world.hosts[broker].kill()
    world.hosts[broker].disk.tree = DirectoryTree()
    world.directory_ids[broker] = f"new-directory-{broker}"
    world.cluster_ids.pop(broker, None)


def test_a_broker_that_lost_its_disk_comes_back_and_catches_up(cluster: ClusterWorld) -> None:
    cluster.create_topic("t", replicas=4)
    for number in range(5):
        assert produce(cluster, "t", b"%d" % number).error_code == 0
    lose_disk(cluster, NOT_A_VOTER)
    cluster.advance(2_000)
    cluster.hosts[NOT_A_VOTER].start()
    cluster.until_started(NOT_A_VOTER)
    cluster.until(lambda: cluster.replicas_of("t")[NOT_A_VOTER].high_watermark == 5)
    assert fetch(cluster, "t", at=NOT_A_VOTER) == [b"0", b"1", b"2", b"3", b"4"]


def test_it_may_come_back_before_the_others_have_missed_it(cluster: ClusterWorld) -> None:
    cluster.create_topic("t", replicas=4)
    lose_disk(cluster, NOT_A_VOTER)
    cluster.hosts[NOT_A_VOTER].start()
    cluster.until_started(NOT_A_VOTER)


def another_process(known: Broker) -> RegisterBroker:
    """A process with another disk that uses the id of that broker."""
    return RegisterBroker(
        broker=known.id,
        incarnation="another",
        directory_id="another",
        rpc=known.rpc,
        kafka=known.kafka,
    )


async def lose_and_regain(cluster: ClusterWorld) -> None:
    """Broker 1, the controller, hands over to broker 2, and gets it back."""
    for source, target in ((1, 2), (2, 1)):
        cluster.controller(source).transfer_leadership(BrokerId(target))
        while not cluster.broker(target).controller.is_active:
            await cluster.broker(1).controller._sleep(5)


@pytest.mark.parametrize("broker", [1, 2, 3, NOT_A_VOTER])
def test_a_second_broker_of_an_id_is_refused(cluster: ClusterWorld, broker: int) -> None:
    first = cluster.broker(broker)
    known = cluster.broker(1).services.cluster.brokers[BrokerId(broker)]
    answer = cluster.submit(another_process(known))
    assert isinstance(answer, Refused)
    assert answer.error_code == Error.DUPLICATE_BROKER_REGISTRATION
    assert f"is taken by a broker that is alive at {known.rpc}" in answer.message
    assert cluster.broker(broker) is first


def test_nothing_is_decided_where_another_controller_decided_while_somebody_was_asked(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller that asks whether a broker is still there loses its leadership, regains it,
    and does not know
    yet what came in between."""
    first = cluster.broker(1).controller
    assert first.is_active
    known = cluster.broker(1).services.cluster.brokers[BrokerId(NOT_A_VOTER)]

    async def is_replaced(_: RegisterBroker) -> bool:
        await lose_and_regain(cluster)
        return True

    monkeypatch.setattr(first, "_is_replaced", is_replaced)
    answer = cluster.do(1, first.execute(another_process(known)))
    assert isinstance(answer, Refused) and answer.error_code == Error.NOT_CONTROLLER
    assert cluster.broker(1).services.cluster.brokers[BrokerId(NOT_A_VOTER)] == known


def test_what_was_told_to_an_earlier_reign_of_a_controller_decides_nothing(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller that asks for reports loses its leadership and regains it: another may have
    decided meanwhile."""
    first = cluster.broker(1).controller
    assert first.is_active
    ask = first.reporting.ask

    async def ask_and_lose(brokers: Iterable[BrokerId], question: Question) -> Reports:
        reported = await ask(brokers, question)
        await lose_and_regain(cluster)
        return reported

    monkeypatch.setattr(first.reporting, "ask", ask_and_lose)
    change = ConfigChange(MAINTENANCE, ConfigOperation.SET, str(NO_END))
    resource = ResourceChanges(ResourceType.BROKER, str(NOT_A_VOTER), (change,))
    answer = cluster.do(1, first.execute(AlterConfigs((resource,))))
    assert isinstance(answer, Refused) and answer.error_code == Error.NOT_CONTROLLER


def test_a_registration_of_an_earlier_start_that_comes_late_ends_the_present_one(
    cluster: ClusterWorld,
) -> None:
    """What it would open after that, the controller takes for another process's."""
    known = cluster.broker(1).services.cluster.brokers[BrokerId(NOT_A_VOTER)]
    late = RegisterBroker(
        broker=known.id,
        incarnation="an earlier start",
        directory_id=cluster.directory_ids[NOT_A_VOTER],
        rpc=known.rpc,
        kafka=known.kafka,
    )
    assert not isinstance(cluster.submit(late), Refused)
    cluster.until(lambda: NOT_A_VOTER in cluster.failures)
    assert "another start of broker 4 was registered" in cluster.failures[NOT_A_VOTER]
    cluster.hosts[NOT_A_VOTER].kill()
    cluster.failures.clear()
    cluster.hosts[NOT_A_VOTER].start()
    cluster.until_started(NOT_A_VOTER)
    cluster.create_topic("t", replicas=4)
    cluster.until(lambda: NOT_A_VOTER in cluster.replicas_of("t"))
    assert not cluster.failures
