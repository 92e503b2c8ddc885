"""Labels of brokers change while they run: what policies say to it, what stays over restarts.

Source: docs/decisions/0015-labels-at-run-time.md."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controller.controller_world import THREE_REGIONS, World, changes, registration

from strandline.controller.balancer.plans import Plans, Wanted
from strandline.controller.commands import (
    AlterConfigs,
    AlterLabels,
    LabelsAltered,
    NewTopic,
    Refused,
    RegisterBroker,
    TopicMoves,
    UnregisterBroker,
)
from strandline.controller.records import BrokerRegistered, decode_record
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.solver.solve import missing_for
from strandline.placement.topology.labels import carried_over

POLICY_VIOLATION, INVALID_CONFIG, INVALID_REQUEST, NOT_REGISTERED = 44, 40, 42, 102
REGION = "survive: region"
FAST = '{"rules": [{"count": 2, "where": [{"label": "disk", "op": "in", "values": ["ssd"]}]}]}'


def alter(
    world: World, *brokers: int, force: bool = False, validate: bool = False, **wanted: str | None
) -> LabelsAltered | Refused:
    command = AlterLabels(
        brokers=tuple(map(BrokerId, brokers)),
        changes=tuple(wanted.items()),
        is_forced=force,
        validate_only=validate,
    )
    answer = world.run(command)
    assert isinstance(answer, LabelsAltered | Refused)
    return answer


def refusal(answer: LabelsAltered | Refused) -> tuple[int, str]:
    assert isinstance(answer, Refused), answer
    return answer.error_code, answer.message


def labels_of(world: World, broker: int) -> dict[str, str]:
    return world.state.cluster.brokers[BrokerId(broker)].labels.as_dict()


def create(world: World, policy: str, name: str = "flights", partitions: int = 6) -> None:
    configs = (("placement.policy", policy),)
    (result,) = world.create(NewTopic(name=name, partitions=partitions, configs=configs))
    assert result.error_code == 0, result


def restart(
    world: World, broker: int, configured: Mapping[str, str], kept: Mapping[str, str] | None = None
) -> dict[str, str]:
    """A new start, of which the configuration says this, and the data directory that."""
    said = registration(broker, incarnation=f"after {len(world.log)}")
    world.run(
        RegisterBroker(
            broker=said.broker,
            incarnation=said.incarnation,
            directory_id=said.directory_id,
            rpc=said.rpc,
            kafka=said.kafka,
            labels=Labels.of(configured if kept is None else kept),
            configured=Labels.of(configured),
        )
    )
    return labels_of(world, broker)


# ---- what changes --------------------------------------------------------------------------------


def test_labels_are_set_replaced_and_taken_off_of_several_brokers() -> None:
    world = World()
    answer = alter(world, 1, 2, rack="r1", disk="ssd")
    assert isinstance(answer, LabelsAltered)
    assert dict(answer.brokers)[BrokerId(2)].as_dict() == labels_of(world, 2)
    assert labels_of(world, 1) == {"region": "east", "rack": "r1", "disk": "ssd"}
    alter(world, 1, rack=None, disk="hdd", nowhere=None)
    assert labels_of(world, 1) == {"region": "east", "disk": "hdd"}
    assert labels_of(world, 2) == {"region": "east", "rack": "r1", "disk": "ssd"}
    assert labels_of(world, 3) == {"region": "west"}


def test_the_registration_is_the_same_but_for_the_labels() -> None:
    world = World()
    before = world.state.cluster.brokers[BrokerId(1)]
    world.create_one(partitions=1, replication_factor=5)
    group = world.state.cluster.topics["flights"].partitions[0].group
    alter(world, 1, zone="a")
    after = world.state.cluster.brokers[BrokerId(1)]
    assert (after.incarnation, after.rpc, after.kafka) == (
        before.incarnation, before.rpc, before.kafka,
    )  # fmt: skip
    assert after.configured == before.labels
    # A version that does not know of this reads a broker that has these labels.
    told = json.loads(world.log[-1])
    assert (told["kind"], told["labels"]["zone"]) == ("broker_registered", "a")
    assert not world.state.has_lost(BrokerId(1), group)


def test_what_changes_nothing_is_no_record_and_a_dry_run_neither() -> None:
    world = World()
    count = len(world.log)
    alter(world, 1, region="east", rack=None)
    answer = alter(world, 1, region="north", validate=True)
    assert isinstance(answer, LabelsAltered)
    assert dict(answer.brokers)[BrokerId(1)].region == "north"
    assert len(world.log) == count and labels_of(world, 1) == {"region": "east"}


@pytest.mark.parametrize(
    ("brokers", "wanted", "code", "says"),
    [
        ((1, 9), {"rack": "r"}, NOT_REGISTERED, "there is no broker 9"),
        ((), {"rack": "r"}, INVALID_REQUEST, "name at least one broker"),
        ((1, 1), {"rack": "r"}, INVALID_REQUEST, "each at most once"),
        ((1,), {}, INVALID_REQUEST, "name at least one label"),
        ((1,), {"broker": "r"}, INVALID_CONFIG, "stands for the broker itself"),
        ((1,), {"Rack": "r"}, INVALID_CONFIG, "must be 1 to 63"),
        ((1,), {"rack": "r 1"}, INVALID_CONFIG, "label rack"),
        ((1,), {"rack": ""}, INVALID_CONFIG, "write rack- to take it off"),
        ((1,), {f"l{n}": "x" for n in range(33)}, INVALID_CONFIG, "at most 32"),
    ],
)
def test_what_is_no_label_or_no_broker_is_refused(
    brokers: tuple[int, ...], wanted: dict[str, str], code: int, says: str
) -> None:
    world = World()
    before = len(world.log)
    found = refusal(alter(world, *brokers, force=True, **wanted))
    assert found[0] == code and says in found[1]
    assert len(world.log) == before


# ---- what policies say ---------------------------------------------------------------------------


def test_a_label_that_a_policy_needs_is_not_taken_off() -> None:
    world = World()
    create(world, REGION)
    create(world, REGION, "trains")
    assert refusal(alter(world, 5, region=None)) == (
        POLICY_VIOLATION,
        "broker 5 would have no label 'region', which the policy of topics flights, trains needs",
    )
    assert labels_of(world, 5) == {"region": "south"}
    alter(world, 5, region=None, force=True)
    assert labels_of(world, 5) == {}


def test_who_lacks_a_label_is_given_it_one_broker_after_the_other() -> None:
    world = World()
    create(world, REGION)
    alter(world, 4, 5, region=None, force=True)
    assert isinstance(alter(world, 5, region="south"), LabelsAltered)  # Broker 4 lacks it still.
    assert refusal(alter(world, 5, region=None))[0] == POLICY_VIOLATION
    assert isinstance(alter(world, 4, region="west"), LabelsAltered)


def test_a_policy_that_could_be_met_no_more_is_told_with_its_replicas() -> None:
    world = World()
    create(world, REGION, partitions=5)
    code, message = refusal(alter(world, 5, region="west"))
    assert code == POLICY_VIOLATION
    assert message.startswith(
        "placement.policy of topic flights could not be met any more, with replicas of "
        "flights-0 on broker 5, flights-1 on broker 5, flights-2 on broker 5 and 2 more partitions:"
        " cannot place "
    )
    assert "this would be possible:" in message and "\nthis would" in message
    assert labels_of(world, 5) == {"region": "south"}


def test_where_a_broker_is_may_be_said_against_every_policy() -> None:
    world = World()
    create(world, REGION)
    answer = alter(world, 5, region="west", force=True)
    assert isinstance(answer, LabelsAltered)
    (objection,) = answer.objections
    assert objection.startswith("placement.policy of topic flights could not be met any more")
    assert labels_of(world, 5) == {"region": "west"}
    # What is not met already refuses nothing.
    assert isinstance(alter(world, 5, region="east"), LabelsAltered)


def test_what_can_be_met_elsewhere_is_taken_and_told_to_move() -> None:
    world = World((*THREE_REGIONS, "south"))
    create(world, REGION)
    held = [
        one.index
        for one in world.state.cluster.topics["flights"].partitions
        if BrokerId(5) in one.replicas
    ]
    assert held
    for validate in (True, False):
        answer = alter(world, 5, region="west", validate=validate)
        assert isinstance(answer, LabelsAltered)
        assert answer.objections == ()
        assert answer.moves == (TopicMoves("flights", len(held), tuple(held[:5])),)
    assert labels_of(world, 5) == {"region": "west"}


def test_what_was_not_as_its_policy_wants_before_is_not_told() -> None:
    world = World((*THREE_REGIONS, "south"))
    world.create(NewTopic(name="flights", assignments=((0, tuple(map(BrokerId, (1, 2, 5)))),)))
    world.run(AlterConfigs((changes(2, "flights", ("placement.policy", 0, REGION)),)))
    answer = alter(world, 5, region="west")
    assert isinstance(answer, LabelsAltered) and answer.moves == ()


def test_labels_that_no_policy_names_move_nothing() -> None:
    world = World()
    create(world, REGION)
    world.create_one("trains")
    answer = alter(world, 1, disk="ssd", rack="r1", upgrade_domain="2")
    assert isinstance(answer, LabelsAltered)
    assert answer.moves == () and answer.objections == ()


def test_a_topic_without_a_policy_of_its_own_has_that_of_the_cluster() -> None:
    world = World()
    world.create_one("flights", partitions=2)
    row = ("strandline.placement.policy", 0, REGION)
    world.run(AlterConfigs((changes(4, "", row),)))
    code, message = refusal(alter(world, 5, region="west"))
    assert code == POLICY_VIOLATION
    assert message.startswith("strandline.placement.policy of topic flights could")


def test_brokers_that_leave_need_no_labels_and_those_that_are_down_count() -> None:
    world = World((*THREE_REGIONS, "south", "south"))
    create(world, REGION)
    world.run(AlterConfigs((changes(4, "7", ("broker.decommission", 0, "true")),)))
    assert isinstance(alter(world, 7, region=None), LabelsAltered)
    world.alive -= {BrokerId(5), BrokerId(6)}
    assert isinstance(alter(world, 5, region="west"), LabelsAltered)  # Broker 6 is to return.
    assert refusal(alter(world, 6, region="west"))[0] == POLICY_VIOLATION


def test_two_brokers_change_together_what_neither_may_alone() -> None:
    world = World(("east", "east", "east"))
    alter(world, 1, 2, disk="ssd")
    alter(world, 3, disk="hdd")
    create(world, FAST, partitions=2)
    assert refusal(alter(world, 1, disk="hdd"))[0] == POLICY_VIOLATION
    assert refusal(alter(world, 1, 2, disk="hdd"))[0] == POLICY_VIOLATION
    assert isinstance(alter(world, 3, disk="ssd"), LabelsAltered)
    answer = alter(world, 1, disk="hdd")
    assert isinstance(answer, LabelsAltered) and answer.moves[0].count == 2


REGIONS = st.sampled_from(("east", "west", "south", "north"))


@settings(max_examples=60, deadline=None)
@given(
    before=st.lists(REGIONS, min_size=3, max_size=7),
    policy=st.sampled_from((REGION, "survive: broker", "survive: [region, 2 brokers]", FAST)),
    broker=st.integers(1, 7),
    wanted=st.one_of(st.none(), REGIONS),
)
def test_what_is_taken_can_be_met_where_it_could_be_and_what_it_breaks_is_told(
    before: list[str], policy: str, broker: int, wanted: str | None
) -> None:
    world = World(before)
    alter(world, *range(1, len(before) + 1), disk="ssd")
    broker = min(broker, len(before))
    configs = (("placement.policy", policy),)
    (created,) = world.create(NewTopic(name="flights", partitions=3, configs=configs))
    if created.error_code:
        return
    answer = alter(world, broker, region=wanted)
    cluster, topic = world.state.cluster, world.state.cluster.topics["flights"]

    def met(labels: Labels) -> list[bool] | None:
        """Whether each partition keeps its policy; None where none could, or a label misses."""
        brokers = [
            one if one.id != broker else type(one)(**{**_fields(one), "labels": labels})
            for one in cluster.brokers.values()
        ]
        plans = Plans(brokers, frozenset())
        ask = plans.ask(topic, cluster)
        found = [(plans.of(ask, one.roles), one) for one in topic.partitions]
        is_met = isinstance(found[0][0], Wanted) and not found[0][0].refusal
        if not is_met or missing_for(ask.policy, plans.universe(frozenset()).candidates):
            return None
        return [isinstance(a, Wanted) and a.is_right(one.roles) for a, one in found]

    old, new = Labels(region=before[broker - 1]), Labels(region=wanted or "")
    disk = (("disk", "ssd"),)
    old, new = Labels(old.region, free=disk), Labels(new.region, free=disk)
    assert met(old) == [True] * 3
    if isinstance(answer, Refused):
        assert met(new) is None and labels_of(world, broker).get("region") == old.region
        return
    after = met(new)
    assert after is not None and labels_of(world, broker).get("region", "") == new.region
    assert sum(one.count for one in answer.moves) == after.count(False)


def _fields(one: object) -> dict[str, object]:
    return {name: getattr(one, name) for name in one.__dataclass_fields__}  # type: ignore[attr-defined]


# ---- restarts ------------------------------------------------------------------------------------


def test_what_was_changed_at_run_time_stays_until_the_configuration_says_something_else() -> None:
    world = World()
    told = {"region": "south", "rack": "r1", "disk": "hdd"}
    restart(world, 5, told)
    alter(world, 5, rack="r2", disk=None, gpu="yes")
    assert restart(world, 5, told) == {"region": "south", "rack": "r2", "gpu": "yes"}
    # Twice the same command, as after a lost answer.
    again = world.state.cluster.brokers[BrokerId(5)]
    assert restart(world, 5, told | {"rack": "r3"}) == {
        "region": "south", "rack": "r3", "gpu": "yes",
    }  # fmt: skip
    assert again.configured == Labels.of(told)
    # It wins even by going back to what was configured before that.
    assert restart(world, 5, told)["rack"] == "r1"
    assert restart(world, 5, {"rack": "r1", "gpu": "no"}) == {"rack": "r1", "gpu": "no"}


def test_a_registration_that_is_asked_for_twice_undoes_nothing() -> None:
    world = World(("east",))
    command = registration(1, incarnation="second")
    world.run(command)
    alter(world, 1, region="west")
    assert world.decide(command).records == ()
    assert labels_of(world, 1) == {"region": "west"}


def test_where_the_controller_knows_nothing_the_data_directory_does() -> None:
    world = World()
    alter(world, 5, region="west", force=True)
    world.alive.discard(BrokerId(5))
    world.run(UnregisterBroker(BrokerId(5)))
    assert restart(world, 5, {"region": "south"}, kept={"region": "west"}) == {"region": "west"}
    assert restart(world, 5, {"region": "south"}) == {"region": "west"}
    assert restart(world, 5, {"region": "north"}) == {"region": "north"}


def test_the_controller_is_right_where_the_data_directory_says_something_else() -> None:
    world = World(("east",))
    restart(world, 1, {"region": "east"})
    alter(world, 1, region="west")  # While it is down.
    found = restart(world, 1, {"region": "east"}, kept={"region": "north"})
    assert found == {"region": "west"}


def test_where_an_earlier_version_admitted_a_broker_its_data_directory_counts() -> None:
    world = World(("east",))
    known = world.state.cluster.brokers[BrokerId(1)]
    world.commit(
        (
            BrokerRegistered(
                id=known.id,
                incarnation="by an earlier version",
                directory_id="directory-1",
                rpc=known.rpc,
                kafka=known.kafka,
                labels=Labels("west"),
            ),
        )
    )
    assert restart(world, 1, {"region": "east"}, kept={"region": "west"}) == {"region": "west"}
    assert world.state.cluster.brokers[BrokerId(1)].configured == Labels("east")


def test_a_registration_of_an_earlier_version_is_taken_for_what_is_configured() -> None:
    world = World(())
    text = json.dumps(
        {
            "kind": "broker_registered",
            "id": 1,
            "incarnation": "old",
            "directory_id": "directory-1",
            "rpc": {"host": "127.0.0.1", "port": 1},
            "kafka": {"host": "127.0.0.1", "port": 2},
            "labels": {"region": "east", "zone": "", "rack": "", "host": "",
                       "upgrade_domain": "", "free": []},
        }
    )  # fmt: skip
    record = decode_record(text.encode())
    assert isinstance(record, BrokerRegistered) and record.configured is None
    world.commit((record,))
    alter(world, 1, region="west")
    assert world.state.cluster.brokers[BrokerId(1)].configured == Labels("east")
    assert restart(world, 1, {"region": "east"}) == {"region": "west"}


VALUES = st.dictionaries(
    st.sampled_from(("region", "rack", "disk", "gpu")), st.sampled_from("abc"), max_size=4
)


@given(kept=VALUES, said=VALUES, says=VALUES)
def test_each_label_is_as_it_was_kept_or_as_the_configuration_newly_says(
    kept: dict[str, str], said: dict[str, str], says: dict[str, str]
) -> None:
    found = carried_over(Labels.of(kept), said=Labels.of(said), says=Labels.of(says)).as_dict()
    for name in ("region", "rack", "disk", "gpu"):
        source = kept if said.get(name) == says.get(name) else says
        assert found.get(name) == source.get(name)
