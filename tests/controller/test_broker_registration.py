"""Every start of a broker is one registration; no two processes are the same broker. Who is gone
for good is taken off.

Source: docs/decisions/0011-the-life-of-a-broker.md."""

import msgspec
import pytest
from tests.controller.controller_world import World, changes, registration

from strandline.controller.commands import (
    AlterConfigs,
    AlterReassignments,
    BrokerAdmitted,
    BrokerTakenOff,
    DeleteTopics,
    NewTopic,
    Refused,
    TopicToDelete,
    UnregisterBroker,
    WantedReplicas,
)
from strandline.controller.records import BrokerRegistered, decode_record
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


def take_off(world: World, broker: int) -> tuple[int, str]:
    """(error code, message)"""
    answer = world.run(UnregisterBroker(BrokerId(broker)))
    if isinstance(answer, BrokerTakenOff):
        return 0, ""
    assert isinstance(answer, Refused)
    return answer.error_code, answer.message


def test_who_is_silent_and_holds_nothing_is_taken_off_with_what_was_wanted_of_it() -> None:
    world = World()
    wanted = changes(4, "5", ("broker.decommission", 0, "true"))
    world.run(AlterConfigs((wanted,)))
    world.create_one(replication_factor=4)  # Not on whom is to leave.
    world.alive.discard(BrokerId(5))
    assert take_off(world, 5) == (0, "")
    cluster = world.state.cluster
    assert sorted(cluster.brokers) == [1, 2, 3, 4]
    assert BrokerId(5) not in cluster.broker_configs
    assert take_off(world, 5) == (102, "there is no broker 5")
    again = World(())
    again.log = []
    for value in world.log:
        again.commit([decode_record(value)])
    assert again.state.cluster == cluster and again.state.directories == world.state.directories


@pytest.mark.parametrize(
    ("broker", "is_up", "says"),
    [
        (
            1,
            False,
            "broker 1 has a vote in the controller: decommission it, and wait until another broker "
            "has taken its vote",
        ),
        (2, False, "broker 2 holds 1 replica, flights-0 among them: decommission it first"),
        (5, True, "broker 5 is up: stop it first"),
    ],
)
def test_who_is_needed_is_not_taken_off(broker: int, *, is_up: bool, says: str) -> None:
    world = World()
    world.voters = frozenset((BrokerId(1),))
    rows = ((0, (BrokerId(2), BrokerId(3))),)
    world.create(NewTopic(name="flights", assignments=rows))
    if not is_up:
        world.alive.discard(BrokerId(broker))
    assert take_off(world, broker) == (44, says)
    assert BrokerId(broker) in world.state.cluster.brokers


def test_a_replica_that_is_on_its_way_to_a_broker_keeps_it() -> None:
    world = World()
    rows = ((0, (BrokerId(2), BrokerId(3))),)
    world.create(NewTopic(name="flights", assignments=rows))
    wanted = WantedReplicas(topic="flights", index=0, replicas=(BrokerId(2), BrokerId(4)))
    world.run(AlterReassignments((wanted,)))
    world.alive -= {BrokerId(3), BrokerId(4)}
    assert take_off(world, 3)[0] == take_off(world, 4)[0] == 44


def test_a_start_that_no_person_wanted_joins_only_if_the_broker_is_known() -> None:
    world = World()
    known = msgspec.structs.replace(
        registration(5, incarnation="second", directory="directory-5"), must_be_known=True
    )
    assert isinstance(world.run(known), BrokerAdmitted)
    world.alive.discard(BrokerId(5))
    assert take_off(world, 5) == (0, "")
    answer = world.run(known)
    assert isinstance(answer, Refused) and answer.error_code == 102
    assert answer.message == "broker 5 was unregistered: start it again to join anew"
    assert BrokerId(5) not in world.state.cluster.brokers


@pytest.mark.parametrize("directory", ["directory-5", "another"])
def test_who_comes_with_the_id_later_begins_anew(directory: str) -> None:
    world = World()
    one, five = BrokerId(1), BrokerId(5)
    world.create(
        NewTopic(name="before", assignments=((0, (one, BrokerId(2))),)),
        NewTopic(name="left", assignments=((0, (one, five)),)),
    )
    world.run(DeleteTopics((TopicToDelete("left"),)))
    world.alive.discard(BrokerId(5))
    assert take_off(world, 5) == (0, "")
    answer = world.run(registration(5, incarnation="second", directory=directory))
    assert isinstance(answer, BrokerAdmitted)
    known = world.state.cluster.brokers[BrokerId(5)]
    assert known.incarnation == "second"
    # Nobody can tell what became of what was there: such a replica begins by asking the others.
    before = world.state.cluster.topics["before"].partitions[0]
    assert world.state.has_lost(BrokerId(5), before.group)
