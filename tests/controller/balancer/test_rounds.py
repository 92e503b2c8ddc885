"""What moves when brokers are lost, come and go, change their labels; what waits, and for whom.

Source: docs/decisions/0010-the-balancer.md."""

import msgspec
import pytest
from tests.controller.balancer.balancer_world import CLUSTER, LOST_AFTER_MS, BalancerWorld, ids

from strandline.controller.balancer import round as rounds
from strandline.controller.balancer.plans import Plans
from strandline.controller.balancer.round import Round, Settings
from strandline.controller.commands import AlterReassignments, BalanceReplicas, WantedReplicas
from strandline.controller.records import ConfigsChanged, DomainRuled, ReplicasDeclaredLost
from strandline.model.cluster import Loss, LostReplica
from strandline.model.ids import BrokerId, Epoch, Index

FIVE = ("east", "east", "west", "west", "south")
SURVIVE = "survive: region"
BROKER = 4
IN = '{"rules":[{"where":[{"label":"region","op":"in","values":[%s]}],"count":%d}]}'


def by_hand(world: BalancerWorld, *replicas: int) -> None:
    wanted = ids(*replicas) if replicas else None
    world.run(AlterReassignments((WantedReplicas(topic="flights", index=0, replicas=wanted),)))


def test_nothing_moves_in_a_cluster_as_it_should_be() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=12)
    world.topic("plain", partitions=12)
    assert world.round() == []
    assert world.waits() == {}


def test_a_lost_broker_is_replaced_in_its_region() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=6)
    world.topic("plain", partitions=6)
    world.lose(1)
    world.rest()
    for name in ("flights", "plain"):
        assert all(1 not in each and len(each) == 3 for each in world.replicas(name))
        assert world.regions(name) == {("east", "south", "west")}


def test_a_broker_that_is_down_for_less_is_waited_for() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=6)
    world.down(5)
    world.wait(LOST_AFTER_MS - 1)
    assert world.round() == []
    assert world.waits() == {"broker-down": ("broker 5 is down, and taken for lost after 900 s", 6)}
    world.up(5)
    world.wait(LOST_AFTER_MS)
    assert world.round() == []


def test_a_region_that_is_lost_is_not_copied_into_the_others_and_it_is_said_what_is_needed() -> (
    None
):
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=14)
    world.topic("plain", partitions=7)
    world.lose(5)
    assert world.round() == []
    needed = "needs one more broker with region=south in place of broker 5"
    assert world.waits() == {"needs-broker": (needed, 21)}
    world.add_broker(6, "south")
    world.wait(60_000)
    world.rest()
    assert world.regions() == world.regions("plain") == {("east", "south", "west")}
    assert world.waits() == {}


def test_a_zone_that_is_lost_is_waited_for_too() -> None:
    world = BalancerWorld(("eu",) * 5)
    for number, zone in enumerate("aabbc", start=1):
        world.relabel(number, "eu", zone=zone)
    world.topic("plain", replicas=(1, 3, 5))
    world.lose(5)
    assert world.round() == []
    needed = "needs one more broker with zone=c in place of broker 5"
    assert world.waits() == {"needs-broker": (needed, 1)}
    world.lose(3)
    world.rest()
    assert world.waits() == {"no-quorum": ("2 of 3 replicas have to be up, and 1 is", 1)}


@pytest.mark.parametrize(
    ("policy", "voting"),
    [
        ("", (1,)),
        ('{"rules":[{"count":2},{"role":"observer","count":1}],"promotion":"under-min-isr"}', ()),
    ],
)
def test_what_goes_on_with_whoever_votes_now_is_repaired(
    policy: str, voting: tuple[int, ...]
) -> None:
    """Also where too few of the replicas of its placement are up."""
    world = BalancerWorld(("east", "west", "south", "east", "west", "south"))
    if policy:
        world.topic(policy=policy)
    else:
        world.topic(replicas=(1, 2, 3))
    (placed,) = world.state.cluster.topics["flights"].partitions
    gone = placed.roles.voters[1:]
    voting = voting or (placed.roles.voters[0], *placed.roles.observers)
    world.lose(*gone)
    assert world.round() == [] and set(world.waits()) == {"no-quorum"}
    world.vote(*voting)
    assert [move.code for move in world.round()] == ["broker-lost"]
    (after,) = world.state.cluster.topics["flights"].partitions
    assert set(after.wanted.all).isdisjoint(gone)
    assert len(after.wanted.voters) == len(placed.replicas)


def test_nothing_is_begun_that_could_not_end_before_others_are_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One votes alone; of four others one is lost, and the rest may come back: five could not
    commit with two of them. What is known to be in vain is not looked for again and again."""
    monkeypatch.setattr(rounds, "VAIN_MAX", 2)
    world = BalancerWorld(("east",) * 8)
    world.topic(replicas=(1, 2, 3, 4, 5), partitions=4)
    world.topic("next", replicas=(1, 2, 8))
    world.lose(2)
    world.down(3, 4, 5)
    world.vote(1)
    moves = world.round()
    assert [world.state.cluster.groups[one.command.group].topic for one in moves] == ["next"]
    needed = "3 of 5 replicas have to be up, and 2 are, once those that can be are replaced"
    assert world.waits()["no-quorum"] == (needed, 4)
    world.settle()
    world.lose(4)
    assert [move.code for move in world.round()] == ["broker-lost"] * 4


def test_a_broker_that_was_given_up_is_waited_for_in_nobodys_way() -> None:
    """Its replica counts for nothing before it has started anew: no move with it could end."""
    world = BalancerWorld(("east",) * 6)
    world.topic(replicas=(1, 2, 3, 4, 5))
    (one,) = world.state.cluster.topics["flights"].partitions
    world.lose(2, 3)
    known = world.state.cluster.brokers
    loss = Loss(
        grant=1,
        lost=tuple(LostReplica(gone, "", known[gone].incarnation) for gone in ids(2, 3)),
        survivors=ids(1, 4, 5),
        ends=((Epoch(1), Index(1)),) * 3,
        leader=BrokerId(1),
        committed=0,
        end=0,
        by="a person",
        at_ms=0,
    )
    world.commit((ReplicasDeclaredLost(one.group, loss),))
    assert world.round() == []
    told = "needs others in place of broker 2, whose replica was declared lost"
    assert world.waits()["needs-broker"] == (told, 1)
    world.add_broker(7, "east")
    world.wait(60_000)
    (move,) = world.round()
    assert set(move.command.target) == set(ids(1, 4, 5, 6, 7))


def test_a_target_is_not_rewritten_for_the_sake_of_its_order() -> None:
    """It holds a broker that is lost, and in whose place there is nobody."""
    world = BalancerWorld(("east",) * 3 + ("west",) * 2 + ("south",) * 2)
    rules = ",".join(
        f'{{"count":{count},"where":[{{"label":"region","op":"in","values":["{region}"]}}]}}'
        for count, region in ((2, "east"), (2, "west"), (1, "south"))
    )
    world.topic(policy=f'{{"rules":[{rules}]}}', partitions=9)
    world.lose(3, 4)
    begun = {move.command.group for move in world.round()}
    assert len(begun) > 1
    assert [move for _ in range(4) for move in world.round()] == []


def test_of_two_lost_replicas_the_one_that_can_be_replaced_is() -> None:
    world = BalancerWorld(("east", "east", "west", "south"))
    world.topic("plain", replicas=(1, 3, 4, 2))
    world.add_broker(5, "east")
    world.wait(60_000)
    world.lose(1)
    world.rest()
    assert world.replicas("plain") == [(2, 3, 4, 5)]
    world.lose(4, 2)
    world.rest()
    assert world.waits()["no-quorum"] == ("3 of 4 replicas have to be up, and 2 are", 1)


def test_in_one_region_without_labels_any_broker_will_do() -> None:
    world = BalancerWorld(("", "", "", ""))
    world.topic("plain", partitions=8)
    world.lose(2)
    world.rest()
    assert {broker for each in world.replicas("plain") for broker in each} == {1, 3, 4}
    world.lose(3)
    assert world.round() == []
    assert world.waits() == {"needs-broker": ("needs one more broker in place of broker 3", 8)}


def test_without_a_quorum_nothing_is_asked_of_a_partition() -> None:
    world = BalancerWorld(("", "", "", "", ""))
    world.topic("plain", replicas=(1, 2, 3))
    world.topic("strict", replicas=(1, 4, 5), configs=[("min.insync.replicas", "3")])
    world.lose(1, 2)
    assert world.round() == []
    found = world.look().waits.found
    assert {text: one.examples for (_, text), one in found.items()} == {
        "2 of 3 replicas have to be up, and 1 is": ["plain-0"],
        "3 of 3 replicas have to be up, and 2 are": ["strict-0"],
    }


def test_a_changed_label_moves_what_breaks_the_policy_by_it() -> None:
    world = BalancerWorld(("east", "west", "south", "south"))
    world.topic(policy=SURVIVE, partitions=6)
    world.relabel(3, "east")
    world.rest()
    assert world.regions() == {("east", "south", "west")}
    assert all(4 in each for each in world.replicas())
    world.relabel(4, "east")
    assert world.round() == []
    text, count = world.waits()["cannot-be-met"]
    assert count == 6 and text.startswith("placement.policy: cannot place 3 voters")


def test_a_label_that_is_missing_is_named() -> None:
    world = BalancerWorld(("east", "west", "south", "south"))
    world.topic(policy=SURVIVE, partitions=6)
    world.relabel(4, "")
    assert world.round() == []
    there = sum(4 in each for each in world.replicas())
    text, count = world.waits()["no-label"]
    assert 0 < count == there < 6 and "broker 4 has no label 'region'" in text


def test_a_broker_that_flaps_moves_nothing_and_is_given_nothing() -> None:
    world = BalancerWorld(("east", "west", "south", "south"))
    world.topic(policy=SURVIVE, partitions=6)
    for _ in range(30):
        world.down(3)
        world.wait(60_000)
        assert world.round() == []
        world.up(3)
        world.wait(60_000)
        assert world.round() == []
    assert 3 not in world.condition.settled
    world.lose(4)  # Meanwhile the other one has been up for long enough.
    assert {*ids(3)} == {one for move in world.round() for one in move.command.target} - {
        *ids(1, 2)
    }


def test_a_broker_that_returns_while_it_is_replaced_keeps_its_replicas() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=6)
    before = world.replicas()
    world.lose(1)
    assert {move.code for move in world.round()} == {"broker-lost"}
    world.up(1)
    world.wait(1_000)
    assert world.round() == []  # It may go down again at once.
    world.wait(60_000)
    assert all(move.command.target == () for move in world.round())
    assert world.replicas() == before and not world.state.cluster.moving
    assert world.round() == []


def replaced_by_the_controller_before() -> tuple[BalancerWorld, list[tuple[int, ...]]]:
    """What replaces broker 1 has begun, and is granted to nobody; where all was before."""
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=6)
    before = world.replicas()
    world.lose(1)
    world.round()
    world.change_controllers()
    return world, before


def test_the_next_controller_gives_up_what_replaces_a_broker_that_returns() -> None:
    world, before = replaced_by_the_controller_before()
    assert world.round() == []
    world.wait(60_000)
    assert world.round() == [] and world.state.cluster.moving
    world.up(1)
    world.wait(60_000)
    assert {move.command.target for move in world.round()} == {()}
    assert world.replicas() == before and not world.state.cluster.moving


def test_the_next_controller_gives_up_what_replaces_a_broker_that_is_held_now() -> None:
    world, before = replaced_by_the_controller_before()
    world.waiting_for = {BrokerId(1): ("zone-down", "region east is held by hand")}
    world.wait(60_000)
    assert {move.command.target for move in world.round()} == {()}
    assert world.replicas() == before and not world.state.cluster.moving


def test_the_next_controller_goes_on_with_what_breaks_the_policy_least() -> None:
    world = BalancerWorld(("east", "east", "south", "west"))
    world.topic(policy=SURVIVE, partitions=4)
    world.alter("", "balancer.best.effort.enable", "true", scope=CLUSTER)
    world.lose(4)
    assert {move.code for move in world.round()} == {"best-effort"}
    targets = [one.target for one in world.state.cluster.groups.values()]
    for _ in range(3):
        world.change_controllers()
        for _ in range(30):
            world.wait(1_000)
            assert world.round() == []
    assert [one.target for one in world.state.cluster.groups.values()] == targets
    assert set(world.reasons.values()) == {"best-effort"}
    world.up(4)
    world.wait(60_000)
    assert {move.command.target for move in world.round()} == {()}


def test_what_was_granted_is_finished_though_the_broker_is_back() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE)
    world.topic("other", replicas=(1, 3, 5))
    world.lose(1)
    world.round()
    world.grant()
    world.up(1)
    world.wait(60_000)
    assert world.round() == []
    world.settle()
    assert world.replicas("other") == [(2, 3, 5)]


def test_a_move_to_a_broker_that_goes_down_gets_another_target() -> None:
    world = BalancerWorld(("east", "east", "east", "west", "south"))
    world.topic(replicas=(1, 4, 5))
    world.lose(1)
    world.round()
    (came,) = world.partition().adding
    world.down(came)
    world.wait(1_000)
    assert world.round() == []
    world.wait(60_000)
    (move,) = world.round()
    (instead,) = world.partition().adding
    assert move.code == "broker-lost" and instead in {2, 3} - {came}
    world.down(instead)
    world.wait(60_000)
    world.round()
    assert not world.partition().is_moving
    assert world.waits()["needs-broker"][1] == 1


def test_what_a_person_moves_is_never_touched() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE)
    by_hand(world, 1, 2, 3)
    world.lose(2)
    assert world.round() == []
    assert world.partition().target == ids(1, 2, 3)
    world.lose(5)
    assert world.round() == []


def test_what_a_person_has_moved_against_the_policy_moves_back_afterwards() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE)
    by_hand(world, 1, 2, 3)
    assert world.round() == []
    world.settle()
    assert world.replicas() == [(1, 2, 3)]
    assert {move.code for move in world.round()} == {"policy-broken"}
    world.rest()
    assert world.regions() == {("east", "south", "west")}


def test_what_cannot_commit_is_in_nobodys_way() -> None:
    world = BalancerWorld(("", "", "", "", "", ""))
    assert world.alter("", "balancer.moves.max", "1", scope=CLUSTER) == (0, "")
    world.topic("one", replicas=(1, 2, 3))
    world.topic("two", replicas=(1, 4, 5))
    world.lose(1)
    assert len(world.round()) == 1
    (moving,) = [name for name in ("one", "two") if world.partition(name).is_moving]
    (other,) = {"one", "two"} - {moving}
    last = {"one": 3, "two": 5}[moving]
    world.down(last)
    (move,) = world.round()
    assert move.command.group == world.partition(other).group
    assert world.waits()["no-quorum"] == ("2 of 3 replicas have to be up, and 1 is", 1)


def test_a_person_takes_over_what_the_balancer_moves() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE)
    (first,) = world.replicas()
    world.lose(first[0])
    world.round()
    assert world.partition().by_balancer
    wanted = world.partition().target
    by_hand(world, *wanted)
    assert world.partition().target == wanted and not world.partition().by_balancer
    assert world.round() == []


def test_a_move_that_rests_on_the_past_changes_nothing() -> None:
    world = BalancerWorld(FIVE)
    world.topic(replicas=(1, 3, 5))
    world.lose(1)
    moves = world.look().moves
    assert len(moves) == 1
    by_hand(world, 4, 3, 5)
    asked = BalanceReplicas(tuple(move.command for move in moves))
    assert world.decide(asked).records == ()
    world.settle()
    assert world.decide(asked).records == ()


@pytest.mark.parametrize("what", ["policy", "default", "label"])
def test_a_move_for_another_policy_or_other_labels_changes_nothing(what: str) -> None:
    """Its count of replicas, and where they may be, is that of before (seed 46 of the balancer's
    histories: a policy wanted three replicas again, and two of them were taken away)."""
    world = BalancerWorld(FIVE)
    world.topic(replicas=(1, 3, 5))
    world.topic("other", replicas=(1, 3, 5))
    world.lose(1)
    asked = BalanceReplicas(tuple(move.command for move in world.look().moves))
    assert world.decide(asked).records
    if what == "label":
        world.relabel(4, "mars")
    else:
        topic = "flights" if what == "policy" else ""
        scope = {} if topic else {"scope": CLUSTER}
        name = "placement.policy" if topic else "strandline.placement.policy"
        assert world.alter(topic, name, "survive: broker", **scope) == (0, "")
    moved = [record.group for record in world.decide(asked).records]
    assert moved == ([world.partition("other").group] if what == "policy" else [])


@pytest.mark.parametrize("what", ["silence", "outage"])
def test_a_move_away_from_who_is_silent_does_not_overtake_what_holds_it(what: str) -> None:
    """A round that had begun before the zone was down took a replica away (seed 24 of the
    balancer's histories). Of a broker that is heard it may."""
    world = BalancerWorld(FIVE)
    world.topic(replicas=(1, 3, 5))
    world.topic("other", replicas=(2, 3, 5))
    down = (DomainRuled(("east",), is_down=True),)
    silence = msgspec.structs.replace(world.state.registration(BrokerId(1)), silent_ms=1)
    if what == "outage":
        world.commit((silence,))
    world.lose(1)
    asked = BalanceReplicas(tuple(move.command for move in world.look().moves))
    assert len(world.decide(asked).records) == 1
    noted = silence if what == "silence" else ConfigsChanged("cluster", "", {}, outages=down)
    world.commit((noted,))
    assert world.decide(asked).records == ()
    again = BalanceReplicas(tuple(move.command for move in world.look().moves))
    assert len(world.decide(again).records) == 1


def test_no_more_move_at_once_than_may_and_the_barest_go_first() -> None:
    world = BalancerWorld(("", "", "", "", "", ""))
    assert world.alter("", "balancer.moves.max", "2", scope=CLUSTER) == (0, "")
    world.topic("five", partitions=4, replicas=(1, 2, 3, 4, 5))
    world.topic("three", partitions=2, replicas=(1, 2, 3))
    world.lose(1)
    assert len(world.round()) == 2
    assert all(one.is_moving for one in world.state.cluster.topics["three"].partitions)
    assert world.round() == []
    assert world.waits() == {"turn": ("2 move, and no more may at the same time", 4)}
    assert world.rest() == 4


def stuck_and_waiting() -> BalancerWorld:
    """Two of four partitions move, whose lost replica others could have; of five more it has to be
    in the east again, where nobody else is."""
    world = BalancerWorld(("east", "west", "west", "west", "west", "west"))
    assert world.alter("", "balancer.moves.max", "2", scope=CLUSTER) == (0, "")
    world.topic("free", partitions=4, replicas=(2, 3, 4))
    world.topic("stuck", partitions=3, replicas=(1, 3, 4))
    world.topic("wedged", partitions=2, replicas=(1, 3, 5))
    world.lose(1, 2)
    return world


STUCK = "needs one more broker with region=east in place of broker 1"
TURN = "2 move, and no more may at the same time"


def test_what_cannot_move_is_told_before_its_turn_comes() -> None:
    world = stuck_and_waiting()
    assert {one.command.group for one in world.round()} == {1, 2}
    assert world.waits() == {"needs-broker": (STUCK, 5), "turn": (TURN, 2)}
    assert not world.look().is_cut


def test_a_round_looks_ahead_for_so_many_and_the_next_one_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounds, "AHEAD_MAX", 1)
    world = stuck_and_waiting()
    world.round()
    cluster, condition = world.state.cluster, world.condition
    plans = Plans(cluster.brokers.values(), condition.lost)
    settings = Settings(is_enabled=True, moves_max=2, lost_after_ms=LOST_AFTER_MS)
    told = []
    for _ in range(4):
        one = Round(cluster, condition, plans, settings=settings, reasons=world.reasons)
        assert all(step is None for step in one.steps()) and not one.moves
        told.append(
            (one.is_cut, {code: found.count for (code, _), found in one.waits.found.items()})
        )
    assert told == [
        (True, {"turn": 7}),
        (True, {"needs-broker": 3, "turn": 4}),
        (False, {"needs-broker": 5, "turn": 2}),
        (False, {"needs-broker": 5, "turn": 2}),
    ]


def test_a_pause_begins_nothing_and_finishes_what_moves() -> None:
    world = BalancerWorld(("", "", "", ""))
    assert world.alter("", "balancer.moves.max", "1", scope=CLUSTER) == (0, "")
    world.topic("plain", partitions=3, replicas=(1, 2, 3))
    world.lose(1)
    assert len(world.round()) == 1
    moves = world.look().moves
    assert world.alter("", "balancer.enable", "false", scope=CLUSTER) == (0, "")
    assert moves == [] and world.round() == []
    world.settle()
    assert world.waits() == {"paused": ("balancer.enable is false", 2)}
    assert world.alter("", "balancer.enable", "true", scope=CLUSTER) == (0, "")
    assert world.rest() == 2


def test_a_new_broker_gets_its_share_of_what_policies_place() -> None:
    world = BalancerWorld(("east", "west", "south"))
    world.topic(policy=SURVIVE, partitions=20)
    world.topic("plain", partitions=4)
    plain = world.replicas("plain")
    world.add_broker(4, "east")
    assert world.round() == []  # It has just come.
    world.wait(60_000)
    moves = world.rest()  # Replicas; then who leads, a fourth of the partitions at most.
    held = [sum(one in each for each in world.replicas()) for one in (1, 4)]
    assert world.regions() == {("east", "south", "west")}
    assert 8 <= moves <= 12 + 5 and abs(held[0] - held[1]) <= 5
    assert world.replicas("plain") == plain


def test_two_policies_that_contend_come_to_rest() -> None:
    world = BalancerWorld(FIVE)
    world.topic("one", policy=IN % ('"east","west"', 3), partitions=9)
    world.topic("two", policy=IN % ('"south","west"', 3), partitions=9)
    world.add_broker(6, "west")
    world.add_broker(7, "south")
    world.wait(60_000)
    world.rest()
    assert all("south" not in each for each in world.regions("one"))
    assert all("east" not in each for each in world.regions("two"))
    assert world.round() == []


def test_what_somebody_stopped_is_left_alone() -> None:
    world = BalancerWorld(FIVE)
    world.topic(replicas=(1, 3, 5))
    world.lose(1)
    world.round()
    by_hand(world)
    world.stopped = {world.partition().group}
    assert world.round() == []
    assert world.waits()["stopped"][1] == 1
