"""What is down, and what a person says of it, is taken down. Source: decision 0018."""

from dataclasses import replace

import msgspec
from tests.controller.controller_world import World

from strandline.controller.commands import Answer, Refused, decode_command, encode
from strandline.controller.outage_commands import (
    DomainAnswer,
    DomainNote,
    NoteOutages,
    OutagesNoted,
    RuleDomain,
)
from strandline.controller.placing.broker_removal import question_of
from strandline.controller.records import ConfigsChanged, decode_record
from strandline.controller.reports import Report
from strandline.model.cluster import NO_END_MS, Domain, Labels, Outage, Ruling
from strandline.model.ids import BrokerId

WEST, SOUTH = ("west",), ("south",)
DOWN = Outage(is_down=True)


def rule(world: World, domain: Domain, ruling: Ruling, until_ms: int = NO_END_MS) -> Answer:
    command = RuleDomain(domain, ruling, until_ms)
    assert decode_command(encode(command)) == command
    return world.run(command)


def note(world: World, domain: Domain, before: Outage, after: Outage) -> tuple[Domain, ...]:
    answer = world.run(NoteOutages((DomainNote(domain, before, after),)))
    assert isinstance(answer, OutagesNoted)
    return answer.domains


def refusal(answer: Answer) -> str:
    assert isinstance(answer, Refused)
    return answer.message


def test_what_is_down_is_noted_once_and_taken_off_when_it_is_back() -> None:
    world = World()
    assert note(world, WEST, Outage(), DOWN) == (WEST,)
    assert note(world, WEST, Outage(), DOWN) == ()  # Another controller was faster.
    assert world.state.cluster.outages == {WEST: DOWN}
    assert note(world, WEST, DOWN, Outage()) == (WEST,)
    assert world.state.cluster.outages == {}


def test_a_note_leaves_what_a_person_has_said_meanwhile() -> None:
    world = World()
    rule(world, WEST, Ruling.HOLD)
    assert note(world, WEST, Outage(), DOWN) == ()
    assert world.state.cluster.outages == {WEST: Outage(False, Ruling.HOLD)}


def test_a_hold_with_an_end_is_written_and_read_again() -> None:
    world = World()
    held = Outage(False, Ruling.HOLD, 1_700_000_000_000)
    assert rule(world, WEST, Ruling.HOLD, held.until_ms) == DomainAnswer(held)
    assert world.replayed().cluster.outages == {WEST: held}


def test_release_ends_a_hold_or_lets_what_is_down_be_repaired() -> None:
    world = World()
    rule(world, WEST, Ruling.HOLD)
    assert rule(world, WEST, Ruling.RELEASE, 5) == DomainAnswer(Outage())
    note(world, WEST, Outage(), DOWN)
    assert rule(world, WEST, Ruling.RELEASE) == DomainAnswer(Outage(True, Ruling.RELEASE))
    assert rule(world, WEST, Ruling.HOLD) == DomainAnswer(Outage(True, Ruling.HOLD))


def test_what_is_up_and_held_by_nobody_cannot_be_released() -> None:
    answer = rule(World(), WEST, Ruling.RELEASE)
    assert refusal(answer) == (
        "region west is not down, and no operator holds it: no repair waits for it"
    )


def test_a_zone_is_released_from_what_holds_its_region_and_the_other_way_round() -> None:
    world = World()
    for number, zone in ((3, "a"), (4, "b")):
        known = world.state.cluster.brokers
        labels = Labels(region="west", zone=zone)
        known[BrokerId(number)] = replace(known[BrokerId(number)], labels=labels)
    zone = ("west", "a")
    released = DomainAnswer(Outage(False, Ruling.RELEASE))
    for holding in (DOWN, Outage(False, Ruling.HOLD)):
        assert "no repair waits for it" in refusal(rule(world, zone, Ruling.RELEASE))
        world.state.cluster.outages[WEST] = holding
        assert rule(world, zone, Ruling.RELEASE) == released
        world.state.cluster.outages.clear()
    world.state.cluster.outages[zone] = DOWN
    assert rule(world, WEST, Ruling.RELEASE) == released
    assert "no repair waits for it" in refusal(rule(world, ("west", "b"), Ruling.RELEASE))


def test_who_is_cut_off_from_the_controller_can_be_released() -> None:
    world = World()
    world.alive.discard(BrokerId(3))
    hearing(world, b1=(1, 2, 4, 5), b2=(1, 2, 4, 5), b4=(3, 4), b5=(1, 2, 4, 5))
    assert "no repair waits for it" in refusal(rule(world, WEST, Ruling.RELEASE))  # Merely down.
    hearing(world, b5=(1, 2, 3, 4, 5))
    assert rule(world, WEST, Ruling.RELEASE) == DomainAnswer(Outage(False, Ruling.RELEASE))
    assert "no repair waits for it" in refusal(rule(world, SOUTH, Ruling.RELEASE))


def test_who_is_heard_is_not_lost() -> None:
    world = World()
    world.alive.discard(BrokerId(3))
    answer = rule(world, WEST, Ruling.LOST)
    assert refusal(answer) == "region west is not lost: broker 4 of its 2 is heard"
    world.alive.discard(BrokerId(4))
    assert rule(world, WEST, Ruling.LOST) == DomainAnswer(Outage(False, Ruling.LOST))


def hearing(world: World, **heard: tuple[int, ...]) -> None:
    """Have brokers tell whom they hear: `b1=(1, 2)`."""
    for name, brokers in heard.items():
        hears = tuple(map(BrokerId, brokers))
        world.reports[BrokerId(int(name[1:]))] = Report(0, 0, hears=hears)


def test_who_is_merely_cut_off_from_the_controller_is_not_lost() -> None:
    world = World()
    world.alive -= {BrokerId(3), BrokerId(4)}
    hearing(world, b1=(1, 2, 5), b2=(1, 2, 5), b5=(1, 2, 3, 4, 5))
    answer = rule(world, WEST, Ruling.LOST)
    assert refusal(answer) == (
        "region west is not lost: brokers 3, 4 of its 2 are heard, though not by the controller"
    )
    hearing(world, b5=(1, 2, 5))
    assert rule(world, WEST, Ruling.LOST) == DomainAnswer(Outage(False, Ruling.LOST))


def test_before_a_loss_is_declared_brokers_are_asked_whom_they_hear() -> None:
    for ruling in (Ruling.LOST, Ruling.RELEASE):
        asked = question_of(RuleDomain(WEST, ruling, NO_END_MS))
        assert asked is not None and asked.hears
    assert question_of(RuleDomain(WEST, Ruling.HOLD, NO_END_MS)) is None


def test_who_is_heard_is_judged_by_the_marks_of_that_region() -> None:
    world = World()
    world.alive.discard(BrokerId(3))
    world.state.cluster.cluster_configs["outage.marks"] = "west=60-70"
    assert rule(world, WEST, Ruling.LOST) == DomainAnswer(Outage(False, Ruling.LOST))


def test_a_domain_of_one_broker_can_be_declared_lost() -> None:
    world = World()
    world.alive.discard(BrokerId(5))
    assert rule(world, SOUTH, Ruling.LOST) == DomainAnswer(Outage(False, Ruling.LOST))


def test_where_no_broker_is_nothing_can_be_said() -> None:
    answer = rule(World(), ("", "nowhere"), Ruling.HOLD)
    assert refusal(answer) == (
        "no broker is in '/nowhere': zones and regions are east, south, west"
    )


def test_versions_that_know_nothing_of_outages_read_that_nothing_was_set() -> None:
    class Before(msgspec.Struct, frozen=True, tag_field="kind", tag="configs_changed"):
        scope: str
        name: str
        values: dict[str, str | None]

    world = World()
    rule(world, WEST, Ruling.HOLD)
    assert isinstance(decode_record(world.log[-1]), ConfigsChanged)
    assert msgspec.json.decode(world.log[-1], type=Before) == Before("cluster", "", {})


def test_since_when_it_is_down_is_written_and_a_ruling_keeps_it() -> None:
    world = World()
    down = Outage(is_down=True, since_ms=1_700_000_000_000)
    assert note(world, WEST, Outage(), down) == (WEST,)
    assert rule(world, WEST, Ruling.RELEASE) == DomainAnswer(replace(down, ruling=Ruling.RELEASE))
    assert world.replayed().cluster.outages == {WEST: replace(down, ruling=Ruling.RELEASE)}


def test_what_an_earlier_release_wrote_of_an_outage_has_no_beginning() -> None:
    """The next controller of this release adds what it knows."""
    world = World()
    note(world, WEST, Outage(), Outage(is_down=True, since_ms=5))
    text = bytes(world.log[-1]).replace(b',"since_ms":5', b"")
    read = decode_record(text)
    assert isinstance(read, ConfigsChanged) and text != world.log[-1]
    world.state.replay(read)
    assert world.state.cluster.outages == {WEST: DOWN}
    assert note(world, WEST, DOWN, Outage(is_down=True, since_ms=5)) == (WEST,)
