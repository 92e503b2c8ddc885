"""Permanent observers of a partition: how they come, go and stay. Source: decision 0017."""

import json
import random
from collections import Counter
from uuid import UUID

import pytest
from tests.controller.controller_world import World, brokers, registration
from tests.controller.one_partition import TOPIC, OnePartition

from strandline.controller.commands import (
    AlterLabels,
    BalancedReplicas,
    BalanceNoted,
    BalanceReplicas,
    CreatePartitions,
    MorePartitions,
    NewTopic,
    Refused,
    RequestVoters,
    TopicResult,
    TopicResults,
    VotersNoted,
)
from strandline.controller.records import (
    Assignment,
    ReassignmentSet,
    TopicCreated,
    decode_record,
    encode_record,
)
from strandline.model.cluster import Roles
from strandline.model.ids import BrokerId, GroupId
from strandline.protocol.errors import Error


def roles(voters: tuple[int, ...], observers: tuple[int, ...] = ()) -> Roles:
    return Roles(brokers(*voters), brokers(*observers))


class Watched(OnePartition):
    """One partition on brokers 1 and 2, with 3 as its observer, of 6."""

    def __init__(self) -> None:
        super().__init__(("east", "west", "south") * 2)
        made = Assignment(GroupId(1), brokers(1, 2), brokers(3))
        self.commit((TopicCreated(name=TOPIC, id=UUID(int=7), partitions=(made,)),))

    def balance(self, wanted: Roles, before: Roles | None = None) -> bool:
        """Whether it was taken down."""
        one = self.partition
        seen = one.wanted if before is None else before
        move = BalancedReplicas(
            group=one.group,
            seen_at=self.state.cluster.version,
            version=one.version,
            replicas=one.replicas,
            observers=one.observers,
            target_before=seen.voters,
            target_observers_before=seen.observers,
            target=wanted.voters,
            target_observers=wanted.observers,
        )
        answer = self.run(BalanceReplicas((move,)))
        assert isinstance(answer, BalanceNoted)
        return bool(answer.groups)

    def request(self, wanted: Roles, version: int = 0) -> bool:
        """Whether it was granted."""
        group = self.partition.group
        answer = self.run(RequestVoters(group, version, wanted.voters, wanted.observers))
        return isinstance(answer, VotersNoted)


def test_an_observer_holds_the_log_and_is_none_of_the_voters() -> None:
    one = Watched().partition
    assert one.roles == roles((1, 2), (3,))
    assert one.hosts == (1, 2, 3)
    assert not one.is_moving


def test_records_of_before_there_were_observers_are_read_as_ever() -> None:
    made = TopicCreated(name="old", id=UUID(int=8), partitions=(Assignment(GroupId(1), (1, 2)),))  # type: ignore[arg-type]
    text = json.loads(encode_record(made))
    del text["partitions"][0]["observers"]
    assert decode_record(json.dumps(text).encode()) == made
    old = {"kind": "reassignment_set", "group": 1, "target": [2, 3]}
    assert decode_record(json.dumps(old).encode()) == ReassignmentSet(GroupId(1), brokers(2, 3))


def test_an_observer_is_replaced_by_a_grant_though_no_voter_changes() -> None:
    world = Watched()
    assert world.balance(roles((1, 2), (4,)))
    assert world.partition.hosts == (1, 2, 4, 3)
    assert (world.partition.adding, world.partition.removing) == ((4,), (3,))
    assert not world.request(roles((1, 2)))
    assert not world.request(roles((1, 2), (3,)))
    assert world.request(roles((1, 2), (4,)))
    assert world.request(roles((1, 2), (4,)))  # As then.
    assert set(world.partition.hosts) == {1, 2, 3, 4}
    assert world.report(1, 2)
    assert world.partition.roles == roles((1, 2), (4,))
    assert world.partition.hosts == (1, 2, 4)
    assert not world.partition.is_moving


def test_a_broker_that_changes_its_role_holds_the_log_all_the_time() -> None:
    world = Watched()
    for version, wanted in enumerate((roles((1, 3), (2,)), roles((1, 2), (3,)))):
        assert world.balance(wanted)
        assert world.partition.adding == world.partition.removing == ()
        assert world.request(wanted, version)
        assert set(world.partition.hosts) == {1, 2, 3}
        assert world.report(*wanted.voters, version=version + 1)
        assert world.partition.roles == wanted


def test_a_voter_that_became_an_observer_is_never_new_again() -> None:
    """It has voted. Where it has no log, as where an older release took its removal from the voters
    for its removal, it has forgotten that."""
    world = Watched()
    has_lost, group = world.state.has_lost, world.partition.group
    world.balance(roles((1, 3), (2,)))
    world.request(roles((1, 3), (2,)))
    assert not any(has_lost(BrokerId(one), group) for one in (1, 2, 3))
    world.report(1, 3)
    assert [has_lost(BrokerId(one), group) for one in (1, 2, 3)] == [False, True, False]


def test_an_observer_that_went_and_came_back_begins_as_one_that_lost_its_disk() -> None:
    """Only who has held the log ever since may begin with an empty one as if it were new."""
    world = Watched()
    group = world.partition.group
    assert not world.state.has_lost(BrokerId(3), group)
    world.balance(roles((1, 2)))
    world.request(roles((1, 2)))
    world.report(1, 2)
    assert world.partition.roles == roles((1, 2))
    world.balance(roles((1, 2), (3,)))
    assert world.state.has_lost(BrokerId(3), group)


def test_an_observer_whose_disk_is_lost_begins_as_such() -> None:
    world = Watched()
    world.alive.discard(BrokerId(3))
    world.run(registration(3, incarnation="second", directory="other"))
    assert world.state.has_lost(BrokerId(3), world.partition.group)


def test_another_order_of_voters_and_observers_is_there_at_once() -> None:
    world = Watched()
    assert world.alter(2, 1, 3).error_code == 0
    assert world.partition.roles == roles((2, 1), (3,))
    assert not world.partition.is_moving


def test_the_last_of_a_list_are_the_observers() -> None:
    """Metadata tells them in that order, and tools replace one by another in its place."""
    world = Watched()
    assert world.alter(1, 4, 5).error_code == 0
    assert world.partition.wanted == roles((1, 4), (5,))
    assert world.alter(1, 2, 6).error_code == 0
    assert world.partition.wanted == roles((1, 2), (6,))
    assert world.cancel().error_code == 0
    assert not world.partition.is_moving
    assert world.partition.roles == roles((1, 2), (3,))


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ((1, 2), "name 3 brokers, the observers last"),
        ((1, 2, 3, 4), "name 3 brokers, the observers last"),
        ((3, 1, 2), "broker 3 is an observer and stands among the voters"),
        ((1, 4, 2), "broker 2 is a voter and stands among the observers"),
    ],
)
def test_a_list_changes_no_role_and_no_number(ids: tuple[int, ...], words: str) -> None:
    world = Watched()
    result = world.alter(*ids)
    assert result.error_code == Error.INVALID_REPLICA_ASSIGNMENT
    assert words in (result.message or "")
    assert not world.partition.is_moving


def test_while_replicas_move_a_list_is_read_by_what_is_wanted() -> None:
    """Who is to become an observer is told in Metadata, too, and must not become a voter by it."""
    world = Watched()
    world.balance(roles((1, 2), (3, 4)))
    for ids, words in (
        ((1, 2, 3), "name 4 brokers"),
        ((1, 4, 2, 3), "broker 4 is an observer"),
        ((5, 3, 6, 4), "broker 3 is an observer"),
    ):
        result = world.alter(*ids)
        assert result.error_code == Error.INVALID_REPLICA_ASSIGNMENT
        assert words in (result.message or "")
    assert world.alter(2, 5, 4, 6).error_code == 0
    assert world.partition.wanted == roles((2, 5), (4, 6))
    assert "broker 1 is a voter" in (world.alter(2, 5, 4, 1).message or "")
    assert "broker 3 is an observer" in (world.alter(2, 3, 4, 6).message or "")
    plain = Watched()
    plain.balance(roles((1, 2)))
    assert "broker 3 is an observer" in (plain.alter(1, 3).message or "")
    assert plain.alter(1, 4).error_code == 0


def test_a_cancel_after_the_grant_asks_for_the_observers_there_were() -> None:
    world = Watched()
    world.alter(1, 2, 4)
    world.request(roles((1, 2), (4,)))
    assert world.cancel().error_code == 0
    assert world.partition.wanted == roles((1, 2), (3,))
    assert set(world.partition.hosts) == {1, 2, 3, 4}
    world.report(1, 2)
    assert world.partition.roles == roles((1, 2), (4,))
    assert world.partition.wanted == roles((1, 2), (3,))


def test_the_balancer_s_move_rests_on_the_observers_that_it_looked_at() -> None:
    world = Watched()
    assert not world.balance(roles((1, 2), (4,)), before=roles((1, 2), (5,)))
    assert world.balance(roles((1, 2), (4,)))
    assert not world.balance(roles((1, 2), (5,)), before=roles((1, 2), (5,)))
    assert world.balance(roles((1, 2), (5,)))
    assert world.partition.wanted == roles((1, 2), (5,))
    assert not world.balance(roles((1, 2), (2,)))
    assert not world.balance(roles((), (2,)))
    assert world.balance(roles(()))
    assert not world.partition.is_moving


def test_more_partitions_by_hand_have_their_observers_last() -> None:
    world = Watched()
    more = MorePartitions(topic=TOPIC, count=2, assignments=(brokers(4, 5, 6),))
    answer = world.run(CreatePartitions((more,)))
    assert isinstance(answer, TopicResults) and not answer.topics[0].error_code
    assert answer.topics[0].replication_factor == 3
    assert world.state.cluster.topics[TOPIC].partitions[1].roles == roles((4, 5), (6,))


def test_a_random_history_is_replayed_to_the_same_state() -> None:
    """And nobody who votes, is granted a vote or is a stable observer is ever out of `hosts`."""
    rng = random.Random(7)
    world = Watched()
    for _ in range(400):
        ids = rng.sample(range(1, 7), rng.randint(1, 5))
        cut = rng.randint(1, len(ids))
        wanted = roles(tuple(ids[:cut]), tuple(ids[cut:]))
        before = world.partition
        match rng.randrange(5):
            case 0:
                world.alter(*ids)
            case 1:
                world.cancel()
            case 2:
                world.balance(wanted)
            case 3:
                world.report(*before.pending, version=before.version + rng.randint(0, 1))
            case 4:
                world.request(rng.choice([before.wanted, wanted]), version=before.version)
        after = world.partition
        assert set(after.roles.all) | set(after.granted.all) <= set(after.hosts)
        assert not set(after.replicas) & set(after.observers)
        assert after.target or not after.hosts[len(after.roles.all) :]
        if after.version > before.version:
            assert after.roles.is_alike(before.granted)
        else:
            assert after.roles.is_alike(before.roles)
    assert world.replayed().cluster == world.state.cluster
    assert world.partition.version > 3


# ---- by policy -----------------------------------------------------------------------------------


def where(*regions: str, op: str = "in") -> str:
    """For a rule or a residency: where it holds."""
    return f"[{{label: region, op: {op}, values: [{', '.join(regions)}]}}]"


WATCHED = "{role: observer, count: 1, where: " + where("south") + "}"
FAR = "{rules: [{count: 3, where: " + where("east", "west") + "}, " + WATCHED + "]}"
ONE_MORE = "{survive: [region], rules: [{role: observer, count: 1}]}"
CONFLUENT = (
    '{"version":%d,"replicas":[{"count":2,"constraints":{"rack":"east"}},'
    '{"count":1,"constraints":{"rack":"west"}}],'
    '"observers":[{"count":2,"constraints":{"rack":"south"}}]}'
)
SEVEN = ("east", "east", "west", "west", "south", "south", "south")


def create(
    world: World,
    policy: str,
    *,
    key: str = "placement.policy",
    factor: int = -1,
    partitions: int = 6,
) -> TopicResult:
    (result,) = world.create(
        NewTopic(
            name=TOPIC,
            partitions=partitions,
            replication_factor=factor,
            configs=((key, policy),),
        )
    )
    return result


def regions_of(world: World) -> set[tuple[tuple[str, ...], tuple[str, ...]]]:
    """{(those of the voters, those of the observers)} of the topic's partitions."""
    known = world.state.cluster.brokers
    return {
        (
            tuple(sorted(known[broker].labels.region for broker in one.replicas)),
            tuple(sorted(known[broker].labels.region for broker in one.observers)),
        )
        for one in world.state.cluster.topics[TOPIC].partitions
    }


def test_a_policy_s_observers_are_placed_by_their_rule() -> None:
    world = World(SEVEN)
    result = create(world, FAR)
    assert (result.error_code, result.replication_factor) == (0, 4)
    assert {observers for _, observers in regions_of(world)} == {("south",)}
    assert all("south" not in voters for voters, _ in regions_of(world))


@pytest.mark.parametrize("version", [1, 2])
def test_confluent_s_json_places_replicas_and_observers_by_rack(version: int) -> None:
    world = World(SEVEN)
    result = create(world, CONFLUENT % version, key="confluent.placement.constraints")
    assert (result.error_code, result.replication_factor) == (0, 5)
    assert regions_of(world) == {(("east", "east", "west"), ("south", "south"))}


@pytest.mark.parametrize(
    ("policy", "factor", "code"),
    [
        (FAR, 4, 0),
        (FAR, 3, Error.INVALID_REPLICATION_FACTOR),
        ("rules: [{role: observer, count: 2}]", 5, 0),
        (ONE_MORE, 4, 0),
        (ONE_MORE, 6, Error.INVALID_REPLICATION_FACTOR),
    ],
)
def test_a_replication_factor_counts_both_roles(policy: str, factor: int, code: int) -> None:
    """As clients count the replicas in Metadata."""
    world = World(SEVEN)
    result = create(world, policy, factor=factor)
    assert result.error_code == code, result.message
    if not code:
        assert result.replication_factor == factor
        assert all(
            len(one.roles.all) == factor for one in world.state.cluster.topics[TOPIC].partitions
        )


def test_observers_survive_for_nobody() -> None:
    """Copies in two other regions, and still all of the voters are in one."""
    elsewhere = "{role: observer, count: 2, where: " + where("east", op="notIn") + "}"
    rules = "rules: [{where: " + where("east") + "}, " + elsewhere + "]"
    world = World(SEVEN)
    result = create(world, "{survive: [region], " + rules + "}")
    assert result.error_code == Error.POLICY_VIOLATION
    assert create(world, "{" + rules + "}", factor=4).error_code == 0


def test_residency_binds_observers() -> None:
    world = World(SEVEN)
    deny = "residency: {deny: " + where("south") + "}"
    result = create(world, "{rules: [{count: 1}, " + WATCHED + "], " + deny + "}")
    assert result.error_code == Error.POLICY_VIOLATION
    free = "{rules: [{count: 1}, {role: observer, count: 3}], " + deny + "}"
    assert create(world, free, partitions=20).error_code == 0
    assert all("south" not in voters + watch for voters, watch in regions_of(world))


def test_replicas_of_both_roles_are_even_and_leaders_are_voters() -> None:
    world = World(("east",) * 6)
    create(world, "rules: [{count: 2}, {role: observer, count: 1}]", partitions=24)
    partitions = world.state.cluster.topics[TOPIC].partitions
    held = Counter(broker for one in partitions for broker in one.hosts)
    led = Counter(one.replicas[0] for one in partitions)
    assert set(held.values()) == {12}
    assert set(led.values()) == {4}


def test_plain_kafka_topics_have_no_observers() -> None:
    world = World(SEVEN)
    world.create(NewTopic(name=TOPIC, partitions=4, replication_factor=3))
    world.create(NewTopic(name="by-hand", assignments=((0, brokers(1, 2, 3, 4)),)))
    groups = world.state.cluster.groups.values()
    assert all(one.observers == () for one in groups)


def test_more_partitions_by_policy_have_observers_too() -> None:
    world = World(SEVEN)
    create(world, FAR)
    answer = world.run(CreatePartitions((MorePartitions(topic=TOPIC, count=9),)))
    assert isinstance(answer, TopicResults) and not answer.topics[0].error_code
    assert len(world.state.cluster.topics[TOPIC].partitions) == 9
    assert {observers for _, observers in regions_of(world)} == {("south",)}


def test_a_down_observer_s_broker_is_in_nobody_s_way_when_a_topic_is_made() -> None:
    """What has to be up is a majority of the voters."""
    world = World(SEVEN)
    world.alive -= set(brokers(5, 6, 7))
    assert create(world, FAR).error_code == 0


def test_labels_that_would_leave_observers_without_a_place_are_objected_to() -> None:
    world = World(("east", "west", "west", "south"))
    create(world, FAR)
    alter = AlterLabels(brokers=brokers(4), changes=(("region", "west"),))
    answer = world.run(alter)
    assert isinstance(answer, Refused) and "could not be met any more" in answer.message
