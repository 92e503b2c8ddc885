"""Who takes part again is taken down, for the present start of a broker alone (decision 0030)."""

from tests.controller.controller_world import World, registration

from strandline.controller.commands import (
    CreateTopics,
    DeleteTopics,
    NewTopic,
    NoteRejoined,
    Refused,
    RejoinedNoted,
    TopicToDelete,
)
from strandline.controller.records import BrokerUnregistered, ConfigsChanged, decode_record
from strandline.model.ids import BrokerId, GroupId
from strandline.protocol.errors import Error

ONE = BrokerId(1)


def with_a_topic() -> tuple[World, GroupId]:
    world = World()
    world.run(CreateTopics((NewTopic(name="t", partitions=1, replication_factor=3),)))
    return world, world.state.cluster.topics["t"].partitions[0].group


def note(world: World, *groups: int, incarnation: str = "") -> object:
    known = incarnation or world.state.cluster.brokers[ONE].incarnation
    return world.run(NoteRejoined(ONE, known, tuple(map(GroupId, groups))))


def test_each_start_has_a_greater_number_than_the_one_before() -> None:
    world, group = with_a_topic()
    assert world.state.rejoined(ONE, group) == 0
    numbers = []
    for start in ("second", "third", "fourth"):
        world.run(registration(1, incarnation=start))
        assert note(world, group) == RejoinedNoted()
        numbers.append(world.state.rejoined(ONE, group))
    assert numbers == sorted(set(numbers)) and numbers[0] > 0
    assert world.state.rejoined(BrokerId(2), group) == 0


def test_what_a_start_has_noted_again_keeps_its_number() -> None:
    """Its replica took part with the first one: what it remembers bears that."""
    world, group = with_a_topic()
    note(world, group)
    number = world.state.rejoined(ONE, group)
    world.run(registration(1, incarnation=world.state.cluster.brokers[ONE].incarnation))
    note(world, group)
    assert world.state.rejoined(ONE, group) == number > 0


def test_a_broker_that_was_unregistered_begins_with_greater_numbers() -> None:
    world, group = with_a_topic()
    note(world, group)
    number = world.state.rejoined(ONE, group)
    incarnation = world.state.cluster.brokers[ONE].incarnation
    world.state.replay(BrokerUnregistered(ONE))
    world.run(registration(1, incarnation=incarnation))
    note(world, group)
    assert world.state.rejoined(ONE, group) > number


def test_an_earlier_start_notes_nothing() -> None:
    """Its word may come after the present one's, and speak of another data directory."""
    world, group = with_a_topic()
    world.run(registration(1, incarnation="second"))
    answer = note(world, group, incarnation="first")
    assert isinstance(answer, Refused) and answer.error_code == Error.STALE_BROKER_EPOCH
    answer = world.run(NoteRejoined(BrokerId(99), "x", (group,)))
    assert isinstance(answer, Refused)
    assert world.state.rejoined(ONE, group) == 0


def test_groups_that_are_no_more_are_left_out() -> None:
    world, group = with_a_topic()
    note(world, group)
    world.run(DeleteTopics((TopicToDelete(name="t"),)))
    assert world.state.rejoined(ONE, group) == 0
    count = len(world.log)
    assert note(world, group) == RejoinedNoted()
    assert len(world.log) == count


def test_versions_that_know_nothing_of_it_read_a_change_of_nothing() -> None:
    world, group = with_a_topic()
    note(world, group)
    record = decode_record(world.log[-1])
    assert isinstance(record, ConfigsChanged)
    assert (record.scope, record.name, record.values, record.outages) == ("cluster", "", {}, ())
