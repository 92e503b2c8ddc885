"""A topic that copies another cluster's topic does so from its first moment to its last."""

from uuid import UUID

from tests.controller.controller_world import World, changes

from strandline.controller.commands import AlterConfigs, NewTopic, ResourceResults
from strandline.model.ids import BrokerId

TOPIC, SET, DELETE = 2, 0, 1
INVALID_CONFIG = 40
OF = ("read.replica.of", "file:///var/buckets/east#orders")
ID = ("read.replica.source.id", f"cluster/{UUID(int=5)}")


def create(world: World, *configs: tuple[str, str]) -> tuple[int, str]:
    (result,) = world.create(NewTopic(name="copy", partitions=1, configs=configs))
    return result.error_code, result.message or ""


def alter(world: World, *rows: tuple[str, int, str | None]) -> tuple[int, str]:
    answer = world.run(AlterConfigs((changes(TOPIC, "copy", *rows),), False))
    assert isinstance(answer, ResourceResults)
    (result,) = answer.resources
    return result.error_code, result.message or ""


def test_a_copy_needs_its_sources_ids() -> None:
    code, message = create(World(), OF)
    assert (code, "read.replica.source.id" in message) == (INVALID_CONFIG, True)
    assert create(World(), OF, ID) == (0, "")


def test_its_source_never_changes() -> None:
    world = World()
    create(world, OF, ID)
    for row in (
        (OF[0], SET, "file:///var/buckets/west"),
        (ID[0], SET, f"cluster/{UUID(int=6)}"),
    ):
        code, message = alter(world, row)
        assert (code, "cannot change" in message) == (INVALID_CONFIG, True)
    assert alter(world, (OF[0], DELETE, None), (ID[0], DELETE, None))[0] == INVALID_CONFIG
    assert alter(world, ("read.replica.max.staleness.ms", SET, "1000")) == (0, "")
    assert alter(world, (OF[0], SET, OF[1])) == (0, ""), "the same value"


def test_a_topic_with_records_of_its_own_becomes_no_copy() -> None:
    world = World()
    create(world)
    code, message = alter(world, (OF[0], SET, OF[1]), (ID[0], SET, ID[1]))
    assert (code, "cannot change" in message) == (INVALID_CONFIG, True)


def test_a_broker_of_an_earlier_release_would_serve_it_as_its_own() -> None:
    world = World()
    world.without_tiering = {BrokerId(2): False}
    code, message = create(world, OF, ID)
    assert (code, "broker 2 may be of an earlier release" in message) == (INVALID_CONFIG, True)
    world.without_tiering = {}
    assert create(world, OF, ID) == (0, "")
    world.without_tiering = {BrokerId(2): False}  # It is only down.
    (result,) = world.create(NewTopic(name="other", partitions=1, configs=(OF, ID)))
    assert result.error_code == 0
    world.without_tiering = {BrokerId(2): True}
    (result,) = world.create(NewTopic(name="third", partitions=1, configs=(OF, ID)))
    assert result.error_code == INVALID_CONFIG
