"""Every start of a broker is one registration; no two processes are the same broker."""

import pytest
from tests.controller.controller_world import World, registration

from strandline.controller.commands import BrokerAdmitted, Refused
from strandline.controller.records import BrokerRegistered
from strandline.model.ids import BrokerId, GroupId


def test_the_first_broker_names_the_cluster() -> None:
    world = World(())
    answer = world.run(registration(1))
    assert isinstance(answer, BrokerAdmitted)
    assert len(answer.cluster_id) == 22
    assert world.state.cluster.cluster_id == answer.cluster_id


def test_the_first_broker_may_bring_the_name_of_the_cluster() -> None:
    world = World(())
    assert world.run(registration(1, cluster_id="mine")) == BrokerAdmitted("mine")
    assert world.run(registration(2)) == BrokerAdmitted("mine")


def test_a_broker_of_another_cluster_is_refused() -> None:
    world = World(("east",))
    answer = world.run(registration(2, cluster_id="another"))
    assert isinstance(answer, Refused)
    assert answer.error_code == 104
    assert BrokerId(2) not in world.state.cluster.brokers


def test_a_new_start_replaces_addresses_labels_and_incarnation() -> None:
    world = World()
    world.run(registration(1, region="north", incarnation="second"))
    broker = world.state.cluster.brokers[BrokerId(1)]
    assert (broker.labels.region, broker.incarnation) == ("north", "second")


def test_the_same_registration_twice_is_one_record() -> None:
    world = World(("east",))
    assert world.decide(registration(1)).records == ()


def test_an_id_in_use_is_refused_to_another_directory_while_its_broker_is_alive() -> None:
    world = World()
    answer = world.run(registration(3, directory="other"))
    assert isinstance(answer, Refused)
    assert answer.error_code == 101
    assert "give this broker another id" in answer.message


def test_an_id_of_a_broker_that_is_gone_and_held_nothing_may_be_used_again() -> None:
    world = World()
    world.alive.discard(BrokerId(3))
    decision = world.decide(registration(3, directory="other"))
    assert isinstance(decision.answer, BrokerAdmitted)
    assert isinstance(decision.records[0], BrokerRegistered)


def test_replicas_made_before_a_new_data_directory_are_known_to_be_lost() -> None:
    world = World()
    world.create_one("before", partitions=1, replication_factor=5)
    world.alive.discard(BrokerId(3))
    world.run(registration(3, directory="empty"))
    world.create_one("after", partitions=1, replication_factor=5)
    before, after = (world.state.cluster.topics[n].partitions[0] for n in ("before", "after"))
    assert world.state.has_lost(BrokerId(3), before.group)
    assert not world.state.has_lost(BrokerId(3), after.group)
    assert not world.state.has_lost(BrokerId(2), before.group)
    assert not world.state.has_lost(BrokerId(3), GroupId(99))


def test_a_restart_with_the_same_directory_loses_nothing() -> None:
    world = World()
    world.create_one(partitions=1, replication_factor=5)
    world.run(registration(3, incarnation="second"))
    assert not world.state.has_lost(BrokerId(3), GroupId(1))


@pytest.mark.parametrize("seed", range(5))
def test_cluster_ids_differ_by_seed_and_start_with_no_dash(seed: int) -> None:
    ids = {World(("east",), seed=seed).state.cluster.cluster_id for seed in (seed, seed + 100)}
    assert len(ids) == 2
    assert not any(one.startswith("-") for one in ids)
