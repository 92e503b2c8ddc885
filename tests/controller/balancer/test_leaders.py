"""Who is preferred as a leader: where the policy wants leaders, then evenly, and never in a hurry.

Source: docs/decisions/0012-leaders.md."""

from collections import Counter

from tests.controller.balancer.balancer_world import CLUSTER, BalancerWorld, ids

from strandline.controller.balancer.evenness import Movable, exchanged
from strandline.controller.balancer.plans import Plans
from strandline.controller.commands import AlterReassignments, WantedReplicas
from strandline.model.cluster import Roles

SIX = ("east", "east", "east", "west", "west", "south")
IN_EAST = '{"leaders":{"prefer":[[{"label":"region","op":"in","values":["east"]}]]}}'
NONE = "{}"


def preferred(world: BalancerWorld, name: str = "flights") -> Counter[int]:
    return Counter(int(one.replicas[0]) for one in world.state.cluster.topics[name].partitions)


def set_policy(world: BalancerWorld, value: str) -> None:
    assert world.alter("flights", "placement.policy", value) == (0, "")


def test_leaders_are_spread_evenly_over_those_that_are_preferred_equally() -> None:
    world = BalancerWorld(("east", "east", "east"))
    world.topic(partitions=12, replicas=(1, 2, 3))
    assert world.round() == []  # Without a policy the order is what a person has said.
    set_policy(world, NONE)
    before = world.replicas()
    moves = world.round()
    assert {move.code for move in moves} == {"leaders-uneven"} and len(moves) == 8
    world.rest()
    assert preferred(world) == {1: 4, 2: 4, 3: 4}
    assert world.replicas() == before


def test_the_preference_goes_before_evenness() -> None:
    world = BalancerWorld(("east", "east", "west", "west"))
    world.topic(partitions=12, replicas=(3, 1, 4, 2))
    set_policy(world, IN_EAST)
    assert {move.code for move in world.round()} == {"leaders"}
    world.rest()
    assert preferred(world) == {1: 6, 2: 6}


def test_a_changed_preference_takes_effect_without_another_command() -> None:
    world = BalancerWorld(("east", "west", "south"))
    world.topic(policy=IN_EAST, partitions=6)
    assert world.round() == []
    set_policy(world, IN_EAST.replace("east", "west"))
    world.rest()
    assert preferred(world) == {2: 6}
    set_policy(world, NONE)
    world.rest()
    assert preferred(world) == {1: 2, 2: 2, 3: 2}


def test_a_preference_that_no_replica_meets_prefers_all_equally() -> None:
    world = BalancerWorld(("east", "east", "east", "west"))
    world.topic(partitions=9, replicas=(1, 2, 3))
    only = '{"rules":[{"where":[{"label":"region","op":"in","values":["east"]}]}],'
    set_policy(world, only + IN_EAST.replace("east", "west")[1:])
    world.rest()
    assert preferred(world) == {1: 3, 2: 3, 3: 3}


def test_leaders_are_handed_on_in_chains() -> None:
    """Broker 1 cannot hand anything to broker 4, but broker 2 can hand on what it gets."""
    world = BalancerWorld(("east", "east", "east", "east"))
    rows = [(1, 2, 3)] * 4 + [(2, 4, 3)] * 2 + [(3, 4, 2)] * 2
    for number, replicas in enumerate(rows):
        world.topic(f"t{number}", replicas=replicas)
        # An own topic for each: their replicas differ.
        assert world.alter(f"t{number}", "placement.policy", NONE) == (0, "")
    world.rest()
    counts = sum((preferred(world, f"t{number}") for number in range(len(rows))), Counter[int]())
    assert max(counts.values()) - min(counts[one] for one in (1, 2, 3, 4)) <= 1


def test_a_broker_that_is_down_or_flaps_changes_no_leaders() -> None:
    world = BalancerWorld(("east", "east", "east"))
    world.topic(partitions=12, replicas=(1, 2, 3))
    set_policy(world, NONE)
    for _ in range(5):
        world.down(2)
        assert world.round() == []
        world.wait(30_000)
        assert world.round() == []
        world.up(2)
        assert world.round() == []
        world.wait(9_000)
        assert world.round() == []
    world.wait(900_000)
    assert len(world.round()) == 8


def test_so_many_change_in_a_round_and_no_more() -> None:
    world = BalancerWorld(("east", "east", "east"))
    world.topic(partitions=600, replicas=(1, 2, 3))
    set_policy(world, NONE)
    changes = [len(world.round()) for _ in range(5)]
    assert changes[:3] == [100, 100, 100] and changes[-1] == 0
    assert max(preferred(world).values()) <= 1.05 * min(preferred(world).values())


def test_a_pause_and_what_a_person_moves_hold_it_up() -> None:
    world = BalancerWorld(("east", "east", "east", "west"))
    world.topic(partitions=12, replicas=(1, 2, 3))
    world.topic("plain", replicas=(1, 2, 3))
    keeps = '{"rules":[{"where":[{"label":"region","op":"in","values":["east"]}]}]}'
    set_policy(world, keeps)
    assert world.alter("", "balancer.enable", "false", scope=CLUSTER) == (0, "")
    assert world.round() == []
    assert world.alter("", "balancer.enable", "true", scope=CLUSTER) == (0, "")
    hand = WantedReplicas(topic="plain", index=0, replicas=ids(4, 1, 2))
    world.run(AlterReassignments((hand,)))
    assert world.round() == []
    world.settle()
    assert {move.code for move in world.round()} == {"leaders-uneven"}


def test_a_small_difference_is_left() -> None:
    """Topics come and go: whoever leads two of fifty more hands nothing on for that."""
    world = BalancerWorld(("east", "east"))
    world.topic("other", partitions=50, replicas=(2, 1))
    world.topic(partitions=52, replicas=(1, 2))
    set_policy(world, NONE)
    assert world.round() == []


def test_the_next_controller_goes_on_and_ends() -> None:
    world = BalancerWorld(SIX)
    world.topic(policy=IN_EAST, partitions=30)
    world.add_broker(7, "east")
    world.wait(60_000)
    world.round()
    world.reasons.clear()  # Another broker is the controller now.
    world.health = type(world.health)()
    world.wait(60_000)
    world.rest(rounds=100)
    counts = preferred(world)
    assert set(counts) <= {1, 2, 3, 7}
    assert max(counts.values()) - min(counts.values()) <= 2
    assert world.round() == []


# ---- that follow the writers ---------------------------------------------------------------------


FOLLOW = '{"leaders":{"follow":"writers"}}'


def following(world: BalancerWorld) -> None:
    networks = "east=10.1.0.0/16,west=10.2.0.0/16"
    assert world.alter("", "client.networks", networks, scope=CLUSTER) == (0, "")
    set_policy(world, FOLLOW)


def test_leaders_that_follow_writers_are_evened_out_within_their_region_only() -> None:
    world = BalancerWorld(("east", "east", "west", "west"))
    world.topic(partitions=12, replicas=(3, 1, 4, 2))
    following(world)
    world.rest()
    assert preferred(world) == {3: 6, 4: 6}


def test_a_preferred_leader_that_is_lost_is_replaced_in_its_region() -> None:
    world = BalancerWorld(("east", "west", "east", "west", "east"))
    world.topic(partitions=4, replicas=(2, 1, 4))
    following(world)
    world.lose(2)
    world.rest()
    assert preferred(world) == {4: 4}
    assert all(2 not in one for one in world.replicas())


def test_leaders_that_follow_the_writers_stay_in_their_region_when_replicas_are_evened_out() -> (
    None
):
    world = BalancerWorld(("east", "east", "west", "west", "south", "south"))
    networks = "east=10.1.0.0/16,west=10.2.0.0/16,south=10.3.0.0/16"
    assert world.alter("", "client.networks", networks, scope=CLUSTER) == (0, "")
    world.topic(replicas=(1, 2, 3, 4, 5))
    set_policy(world, "{survive: [region, 2 brokers], leaders: {follow: writers}}")
    cluster = world.state.cluster
    plans = Plans(cluster.brokers.values(), frozenset())
    wanted = plans.of(plans.ask(cluster.topics["flights"], cluster), world.partition().roles)
    assert not isinstance(wanted, str)
    movable = Movable(world.partition(), wanted)
    leader, other, new = ids(1, 2, 6)
    assert exchanged(movable, leader, new) == Roles(ids(2, 6, 3, 4, 5))
    assert exchanged(movable, other, new) == Roles(ids(1, 6, 3, 4, 5))
