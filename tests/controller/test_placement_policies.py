"""Topics are placed by a policy: their own, Confluent's JSON, or the cluster's default."""

from collections import Counter

import pytest
from tests.controller.controller_world import World, changes

from strandline.controller.commands import (
    AlterConfigs,
    CreatePartitions,
    EnsureInternalTopic,
    MorePartitions,
    NewTopic,
    ResourceResults,
    TopicResult,
    TopicResults,
)
from strandline.controller.names import OFFSETS_TOPIC
from strandline.controller.placing.policies import PARTITIONS_BY_POLICY_MAX, policy_of
from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Leaders, Selector

TOPIC, CLUSTER = 2, 4
SET, DELETE = 0, 1
SURVIVE_REGION = "survive: region"
IN_EAST = '{"rules":[{"where":[{"label":"region","op":"in","values":["east"]}],"count":%d}]}'
FOLLOW = '{"leaders":{"follow":"writers"}}'
NETWORKS = "east=10.1.0.0/16,west=10.2.0.0/16"
CONSTRAINTS = (
    '{"version":2,"replicas":[{"count":2,"constraints":{"rack":"east"}},'
    '{"count":1,"constraints":{"rack":"south"}}]}'
)


def create(
    world: World,
    policy: str,
    *,
    key: str = "placement.policy",
    partitions: int = 4,
    replication_factor: int = -1,
    more: tuple[tuple[str, str], ...] = (),
) -> TopicResult:
    (result,) = world.create(
        NewTopic(
            name="flights",
            partitions=partitions,
            replication_factor=replication_factor,
            configs=((key, policy), *more),
        )
    )
    return result


def regions_of(world: World) -> list[list[str]]:
    brokers = world.state.cluster.brokers
    return [
        sorted(brokers[one].labels.region for one in partition.replicas)
        for partition in world.state.cluster.topics["flights"].partitions
    ]


def set_default(world: World, key: str, value: str | None) -> tuple[int, str | None]:
    answer = world.run(
        AlterConfigs((changes(CLUSTER, "", (key, DELETE if value is None else SET, value)),))
    )
    assert isinstance(answer, ResourceResults)
    (result,) = answer.resources
    return result.error_code, result.message


def test_what_must_survive_says_how_many_replicas_and_where() -> None:
    world = World()
    result = create(world, SURVIVE_REGION)
    assert (result.error_code, result.replication_factor) == (0, 3)
    assert regions_of(world) == [["east", "south", "west"]] * 4
    world = World()
    result = create(world, "survive: [region, 2 brokers]")
    assert (result.error_code, result.replication_factor) == (0, 5)


def test_a_policy_is_kept_in_one_spelling() -> None:
    world = World()
    create(world, "survive:\n  - region\n")
    configs = world.state.cluster.topics["flights"].configs
    assert configs == {"placement.policy": '{"survive":[{"region":1}]}'}


def test_confluents_constraints_are_taken_and_kept_as_they_are() -> None:
    world = World()
    spaced = CONSTRAINTS.replace(",", ",\n  ")
    result = create(world, spaced, key="confluent.placement.constraints")
    assert (result.error_code, result.replication_factor) == (0, 3)
    assert regions_of(world) == [["east", "east", "south"]] * 4
    configs = world.state.cluster.topics["flights"].configs
    assert configs == {"confluent.placement.constraints": CONSTRAINTS}


@pytest.mark.parametrize(
    ("policy", "key", "says"),
    [
        ("survive: planet", "placement.policy", "placement.policy: "),
        ("survivе: region", "placement.policy", "unknown field"),
        (CONSTRAINTS.replace("rack", "zone"), "confluent.placement.constraints", "zone"),
        ('{"rules":[{"role":"observer"}]}', "placement.policy", "observers need a count"),
        (FOLLOW, "placement.policy", "set client.networks for the cluster"),
    ],
)
def test_a_policy_that_means_nothing_is_refused_in_one_line(
    policy: str, key: str, says: str
) -> None:
    world = World()
    result = create(world, policy, key=key)
    assert result.error_code == 40
    assert result.message is not None
    assert says in result.message and "\n" not in result.message
    assert not world.state.cluster.topics


def test_a_policy_that_cannot_be_met_is_refused_with_reasons_and_with_what_could_be() -> None:
    world = World()
    result = create(world, IN_EAST % 3)
    assert result.error_code == 44
    assert result.message is not None
    assert "brokers 3, 4, 5: " in result.message and "region" in result.message
    assert "this would be possible: " in result.message
    assert not world.state.cluster.topics


def test_a_refusal_ends_with_what_no_broker_has() -> None:
    note = "\nno broker has region=sout; brokers have east, south, west (did you mean south?)"
    policy = '{"rules":[{"count":2,"where":[{"label":"region","op":"in","values":["sout"]}]}]}'
    world = World()
    refused = create(world, policy)
    assert (refused.message or "").endswith(note)
    create(world, "{}")
    code, message = set_policy(world, policy)
    assert code == 44 and (message or "").endswith(note)


def test_what_does_not_survive_what_it_names_is_refused() -> None:
    world = World(("east", "east", "west", "west"))
    result = create(world, SURVIVE_REGION)
    assert result.error_code == 44
    assert result.message is not None and "region" in result.message


def test_min_insync_replicas_count_in_what_survives() -> None:
    world = World()
    result = create(world, SURVIVE_REGION, more=(("min.insync.replicas", "3"),))
    # Three in three regions cannot lose one and still have three in sync.
    assert (result.error_code, result.replication_factor) == (0, 5)


def test_a_label_that_is_missing_is_named_with_its_broker() -> None:
    world = World()
    result = create(world, "survive: zone")
    assert result.error_code == 44
    assert result.message is not None
    assert "brokers 1, 2, 3, 4, 5 have no label 'zone'" in result.message


def test_a_replication_factor_beside_a_policy_has_to_be_the_same() -> None:
    assert create(World(), SURVIVE_REGION, replication_factor=3).error_code == 0
    for policy in (SURVIVE_REGION, IN_EAST % 1):
        result = create(World(), policy, replication_factor=5)
        assert result.error_code == 38
        assert result.message is not None and "-1" in result.message
    assert create(World(), SURVIVE_REGION, replication_factor=0).error_code == 38


def test_one_policy_at_a_time_and_none_beside_a_manual_assignment() -> None:
    world = World()
    both = (("confluent.placement.constraints", CONSTRAINTS),)
    result = create(world, SURVIVE_REGION, more=both)
    assert result.error_code == 40
    assert result.message is not None and "are both set" in result.message
    assigned = NewTopic(
        name="flights",
        assignments=((0, (BrokerId(1), BrokerId(2))),),
        configs=(("placement.policy", SURVIVE_REGION),),
    )
    (result,) = world.create(assigned)
    assert result.error_code == 42
    assert not world.state.cluster.topics


def test_brokers_that_are_down_come_last_and_a_majority_is_up() -> None:
    world = World()
    world.alive.discard(BrokerId(1))
    assert create(world, SURVIVE_REGION).error_code == 0
    placed = world.state.cluster.topics["flights"].partitions
    assert not any(1 in partition.replicas for partition in placed)
    world = World()
    world.alive -= {BrokerId(1), BrokerId(2)}
    result = create(world, IN_EAST % 2)
    assert result.error_code == 44
    assert result.message is not None and "brokers 1, 2 are down" in result.message


def test_more_partitions_follow_the_policy() -> None:
    world = World()
    create(world, IN_EAST % 2, partitions=1)
    answer = world.run(CreatePartitions((MorePartitions(topic="flights", count=6),)))
    assert isinstance(answer, TopicResults)
    assert answer.topics[0].error_code == 0
    assert regions_of(world) == [["east", "east"]] * 6


def test_a_default_of_the_cluster_holds_for_topics_without_a_policy_of_their_own() -> None:
    world = World()
    assert set_default(world, "strandline.placement.policy", "survive: [region, 2 brokers]")[0] == 0
    assert world.state.cluster.cluster_configs == {
        "strandline.placement.policy": '{"survive":[{"region":1},{"broker":2}]}'
    }
    (result,) = world.create(NewTopic(name="plain"))
    assert (result.error_code, result.replication_factor) == (0, 5)
    (result,) = world.create(NewTopic(name="few", replication_factor=3))
    assert result.error_code == 38
    assert result.message is not None and "strandline.placement.policy" in result.message
    assert create(world, IN_EAST % 2).replication_factor == 2
    answer = world.run(EnsureInternalTopic(OFFSETS_TOPIC))
    assert isinstance(answer, TopicResults)
    assert (answer.topics[0].error_code, answer.topics[0].replication_factor) == (0, 5)
    assert set_default(world, "strandline.placement.policy", None)[0] == 0
    (result,) = world.create(NewTopic(name="even"))
    assert (result.error_code, result.replication_factor) == (0, 3)


LOG_CONSTRAINTS = "confluent.log.placement.constraints"


@pytest.mark.parametrize("factor", [1, 3, 4])
def test_a_replication_factor_leaves_the_default_of_constraints_out(factor: int) -> None:
    """Confluent's rule: whoever gives a factor has it, whatever the cluster's default asks for."""
    world = World()
    assert set_default(world, LOG_CONSTRAINTS, CONSTRAINTS)[0] == 0
    (result,) = world.create(NewTopic(name="flights", replication_factor=factor))
    assert (result.error_code, result.replication_factor) == (0, factor)
    topic, defaults = world.state.cluster.topics["flights"], world.state.cluster.cluster_configs
    assert topic.configs == {"confluent.placement.constraints": ""}
    # Nor does it hold later, until that is taken away.
    assert policy_of(topic.configs, defaults) is None
    change = changes(TOPIC, "flights", ("confluent.placement.constraints", DELETE, None))
    assert isinstance(world.run(AlterConfigs((change,))), ResourceResults)
    found = policy_of(world.state.cluster.topics["flights"].configs, defaults)
    assert found is not None and found[0] == LOG_CONSTRAINTS


def test_without_a_replication_factor_the_default_of_constraints_holds() -> None:
    """So do topics that are created by themselves, and those of the brokers."""
    world = World()
    assert set_default(world, LOG_CONSTRAINTS, CONSTRAINTS)[0] == 0
    (result,) = world.create(NewTopic(name="flights", partitions=4))
    assert result.error_code == 0 and regions_of(world) == [["east", "east", "south"]] * 4
    answer = world.run(EnsureInternalTopic(OFFSETS_TOPIC))
    assert isinstance(answer, TopicResults) and answer.topics[0].replication_factor == 3
    assert "confluent.placement.constraints" not in (
        world.state.cluster.topics[OFFSETS_TOPIC].configs
    )


def test_the_offsets_topic_has_constraints_of_its_own() -> None:
    world, key = World(), "confluent.offsets.topic.placement.constraints"
    assert set_default(world, "strandline.placement.policy", "survive: [region, 2 brokers]")[0] == 0
    assert set_default(world, key, "{")[0] == 40
    code, message = set_default(world, key, CONSTRAINTS.replace("south", "mars"))
    assert code == 44 and message is not None and message.startswith(f"{key}: ")
    assert set_default(world, key, CONSTRAINTS)[0] == 0
    answer = world.run(EnsureInternalTopic(OFFSETS_TOPIC))
    assert isinstance(answer, TopicResults)
    assert (answer.topics[0].error_code, answer.topics[0].replication_factor) == (0, 3)
    assert world.state.cluster.topics[OFFSETS_TOPIC].configs["confluent.placement.constraints"] == (
        CONSTRAINTS
    )


def given(world: World, *replicas: int, partitions: int = 2) -> tuple[int, str]:
    """(error code, message) of a topic whose last partition is put on these brokers, and the others
    on 1, 3, 5."""
    sets = [ids(1, 3, 5)] * (partitions - 1) + [ids(*replicas)]
    (result,) = world.create(NewTopic(name="given", assignments=tuple(enumerate(sets))))
    return result.error_code, result.message or ""


def ids(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


@pytest.mark.parametrize(
    ("policy", "replicas", "why"),
    [
        ("survive: region", (1, 3, 5), ""),
        ("survive: region", (3, 5, 2), ""),
        ("survive: region", (1, 2, 3), "survive 1 region does not hold"),
        (
            "residency: {deny: [{label: region, op: in, values: [south]}]}",
            (1, 3, 5),
            "residency: broker 5: region is in [south]",
        ),
        ("rules: [{count: 3}]", (1, 2, 3), ""),
        ("leaders: {prefer: [[{label: region, op: in, values: [west]}]]}", (1, 2, 5), ""),
        ("spread: [{by: region, level: soft}]", (1, 2, 5), ""),
    ],
)
def test_replicas_that_a_client_chooses_keep_the_default_of_the_cluster(
    policy: str, replicas: tuple[int, ...], why: str
) -> None:
    """Where there is no default they are taken as they are, as Kafka takes them (decision 0008)."""
    key, world = "strandline.placement.policy", World()
    assert given(world, *replicas, partitions=1) == (0, "")
    world = World()
    assert set_default(world, key, policy) == (0, None)
    code, message = given(world, *replicas, partitions=1)
    assert code == (44 if why else 0)
    assert why in message and (key in message) == bool(why)
    assert bool(world.state.cluster.topics) == (not why)


def test_the_partition_whose_replicas_break_the_default_is_named() -> None:
    world = World()
    set_default(world, "strandline.placement.policy", "survive: region")
    code, message = given(world, 3, 4, 5, partitions=3)
    assert code == 44
    assert message.startswith("replicas 3,4,5 of partition 2 break strandline.placement.policy: ")


@pytest.mark.parametrize("is_own", [False, True])
def test_so_do_those_that_a_client_chooses_for_more_partitions(*, is_own: bool) -> None:
    world = World()
    if is_own:
        create(world, SURVIVE_REGION, partitions=1)
    else:
        set_default(world, "strandline.placement.policy", SURVIVE_REGION)
        world.create(NewTopic(name="flights", partitions=1))

    def add(*replicas: int) -> int:
        more = MorePartitions(topic="flights", count=2, assignments=(ids(*replicas),))
        answer = world.run(CreatePartitions((more,)))
        assert isinstance(answer, TopicResults)
        return answer.topics[0].error_code

    assert [add(1, 2, 3), add(2, 4, 5)] == [44, 0]


def test_a_default_that_cannot_be_read_is_refused() -> None:
    code, message = set_default(World(), "strandline.placement.policy", "survive: planet")
    assert code == 40
    assert message is not None and message.startswith("strandline.placement.policy: ")


def test_the_policy_of_a_topic_may_be_said_again_changed_and_taken_away() -> None:
    world = World()
    create(world, SURVIVE_REGION)
    for operation, value, code in (
        (SET, SURVIVE_REGION, 0),
        (SET, IN_EAST % 2, 0),
        (SET, IN_EAST % 3, 44),
        (DELETE, None, 0),
    ):
        change = changes(TOPIC, "flights", ("placement.policy", operation, value))
        answer = world.run(AlterConfigs((change,)))
        assert isinstance(answer, ResourceResults)
        assert answer.resources[0].error_code == code
    assert world.state.cluster.topics["flights"].configs == {}


def test_so_many_partitions_that_the_controller_would_fall_silent_are_refused() -> None:
    result = create(World(), SURVIVE_REGION, partitions=PARTITIONS_BY_POLICY_MAX + 1)
    assert result.error_code == 44
    assert result.message is not None and str(PARTITIONS_BY_POLICY_MAX) in result.message
    assert create(World(), SURVIVE_REGION, partitions=0).error_code == 37


# ---- leaders that follow the writers -------------------------------------------------------------


def set_policy(world: World, value: str) -> tuple[int, str | None]:
    answer = world.run(AlterConfigs((changes(TOPIC, "flights", ("placement.policy", SET, value)),)))
    assert isinstance(answer, ResourceResults)
    (result,) = answer.resources
    return result.error_code, result.message


def test_leaders_follow_writers_where_it_is_known_where_clients_are() -> None:
    world = World()
    assert set_default(world, "client.networks", NETWORKS)[0] == 0
    result = create(world, FOLLOW, partitions=9)
    assert (result.error_code, result.partitions) == (0, 9)
    first = Counter(one.replicas[0] for one in world.state.cluster.topics["flights"].partitions)
    assert max(first.values()) - min(first.values()) <= 1  # Nobody has written yet: evenly.


def test_a_topic_cannot_be_made_to_follow_writers_of_whom_nothing_is_known() -> None:
    world = World()
    create(world, SURVIVE_REGION)
    code, message = set_policy(world, FOLLOW)
    assert code == 40 and message is not None and "set client.networks" in message
    assert set_default(world, "strandline.placement.policy", FOLLOW)[0] == 40
    set_default(world, "client.networks", NETWORKS)
    assert set_policy(world, FOLLOW) == (0, None)
    assert set_default(world, "strandline.placement.policy", FOLLOW)[0] == 0


def test_the_table_stays_as_long_as_the_default_of_topics_needs_it() -> None:
    """Or no topic could be created any more, those of the brokers themselves included."""
    world = World()
    set_default(world, "client.networks", NETWORKS)
    create(world, FOLLOW)
    assert set_default(world, "client.networks", None) == (0, None)  # Leaders stay where they are.
    set_default(world, "client.networks", NETWORKS)
    set_default(world, "strandline.placement.policy", FOLLOW)
    code, message = set_default(world, "client.networks", None)
    assert code == 40 and message is not None and "strandline.placement.policy" in message
    assert set_default(world, "strandline.placement.policy", None) == (0, None)
    assert set_default(world, "client.networks", None) == (0, None)


def test_a_topic_that_follows_gets_more_partitions_though_the_table_is_gone() -> None:
    world = World()
    set_default(world, "client.networks", NETWORKS)
    create(world, FOLLOW)
    set_default(world, "client.networks", None)
    answer = world.run(CreatePartitions((MorePartitions(topic="flights", count=6),)))
    assert isinstance(answer, TopicResults) and answer.topics[0].error_code == 0


def test_networks_that_are_none_are_refused_in_one_line() -> None:
    code, message = set_default(World(), "client.networks", "east=10.1.2.3/16")
    assert code == 42 and message is not None
    assert message.startswith("client.networks ") and "write 10.1.0.0/16" in message


PREFERENCE = "redpanda.leaders.preference"
PREFERENCE_OF_ALL = "default_leaders_preference"


def leads(world: World, topic: str = "flights") -> set[str]:
    """The regions of the preferred leaders."""
    brokers = world.state.cluster.brokers
    partitions = world.state.cluster.topics[topic].partitions
    return {brokers[one.replicas[0]].labels.region for one in partitions}


def test_redpandas_leader_preference_says_where_leaders_are_and_nothing_else() -> None:
    world = World()
    result = create(world, "racks: west", key=PREFERENCE, replication_factor=3)
    assert (result.error_code, result.replication_factor) == (0, 3)
    assert leads(world) == {"west"}
    assert regions_of(world) == [["east", "south", "west"]] * 4
    assert world.state.cluster.topics["flights"].configs == {PREFERENCE: "racks: west"}
    found = policy_of({PREFERENCE: "ordered_racks:south,east"}, {})
    assert found is not None
    assert found[0] == PREFERENCE
    assert found[1].leaders == Leaders(
        prefer=tuple((Selector("region", "in", (one,)),) for one in ("south", "east"))
    )
    assert policy_of({PREFERENCE: "none"}, {}) is None


def test_a_leader_preference_goes_with_a_policy_that_says_nothing_of_leaders() -> None:
    for key, text, regions in (
        ("placement.policy", "survive: [region, 2 brokers]", 5),
        ("confluent.placement.constraints", CONSTRAINTS, 3),
    ):
        world = World()
        result = create(world, text, key=key, more=((PREFERENCE, "racks:south"),))
        assert (result.error_code, result.replication_factor) == (0, regions)
        assert leads(world) == {"south"}


def test_who_says_where_leaders_are_says_it_once() -> None:
    policy = '{"leaders":{"prefer":[[{"label":"region","op":"in","values":["east"]}]]}}'
    result = create(World(), policy, more=((PREFERENCE, "racks:south"),))
    assert result.error_code == 40
    assert result.message is not None
    assert "placement.policy and redpanda.leaders.preference" in result.message
    world = World()
    assert set_default(world, "strandline.placement.policy", policy)[0] == 0
    code, message = set_default(world, PREFERENCE_OF_ALL, "racks:south")
    assert code == 40
    assert message is not None and PREFERENCE_OF_ALL in message


def test_the_topics_own_word_on_leaders_goes_before_the_clusters() -> None:
    policy = '{"leaders":{"prefer":[[{"label":"region","op":"in","values":["east"]}]]}}'
    world = World()
    assert set_default(world, PREFERENCE_OF_ALL, "racks:south")[0] == 0
    create(world, policy)
    (result,) = world.create(NewTopic(name="other", partitions=4))
    assert result.error_code == 0
    assert (leads(world), leads(world, "other")) == ({"east"}, {"south"})
    world = World()
    assert set_default(world, "strandline.placement.policy", policy)[0] == 0
    create(world, "racks:west", key=PREFERENCE)
    assert leads(world) == {"west"}
    found = policy_of({PREFERENCE: "none"}, world.state.cluster.cluster_configs)
    assert found is not None and not found[1].leaders.prefer


@pytest.mark.parametrize("text", ["racks:", "rack:east", "racks:east,,west"])
def test_a_leader_preference_that_is_none_is_refused_in_one_line(text: str) -> None:
    result = create(World(), text, key=PREFERENCE)
    assert result.error_code == 40
    assert result.message is not None and result.message.startswith(f"{PREFERENCE}: ")


def test_a_default_preference_is_checked_for_the_topics_that_take_it() -> None:
    world = World()
    create(world, SURVIVE_REGION)
    change = changes(TOPIC, "flights", (PREFERENCE, SET, "racks:south"))
    answer = world.run(AlterConfigs((change,)))
    assert isinstance(answer, ResourceResults)
    assert answer.resources[0].error_code == 0
    assert set_default(world, PREFERENCE_OF_ALL, "racks:east")[0] == 0
    assert set_default(world, PREFERENCE_OF_ALL, "racks:")[0] == 40
