"""Who is silent is taken down for the controllers to come. Source: decision 0010, "Damping"."""

import msgspec
from tests.controller.controller_world import World, registration

from strandline.controller.commands import AlterLabels, LabelsAltered, UnregisterBroker
from strandline.controller.outage_commands import LastSeenNote, LastSeenNoted, NoteLastSeen
from strandline.controller.records import decode_record
from strandline.model.ids import BrokerId


def note(world: World, *notes: tuple[int, int | None, int | None]) -> dict[BrokerId, int]:
    """Notes are (broker, before, now)."""
    command = NoteLastSeen(tuple(LastSeenNote(BrokerId(one), *rest) for one, *rest in notes))
    assert world.run(command) == LastSeenNoted()
    return world.state.cluster.silent_ms


def test_silences_are_noted_lengthened_and_ended() -> None:
    world = World()
    world.alive -= {BrokerId(4), BrokerId(5)}
    assert note(world, (4, None, 10_000), (5, None, 11_000)) == {4: 10_000, 5: 11_000}
    assert note(world, (4, 10_000, 15_000)) == {4: 15_000, 5: 11_000}
    world.alive.add(BrokerId(4))
    assert note(world, (4, 15_000, None)) == {5: 11_000}


def test_what_rests_on_something_else_changes_nothing() -> None:
    world = World()
    world.alive -= {BrokerId(5)}
    assert note(world, (4, None, 10_000)) == {}  # It is heard.
    assert note(world, (9, None, 10_000)) == {}  # Nobody knows it.
    assert note(world, (5, None, 10_000)) == {5: 10_000}
    assert note(world, (5, None, 20_000)) == {5: 10_000}  # Another controller was faster.
    assert note(world, (5, 10_000, None)) == {5: 10_000}  # It is not heard.
    assert note(world, (4, None, None)) == {5: 10_000}  # It never was silent.
    world.alive.add(BrokerId(5))
    assert note(world, (5, 10_000, None), (5, 10_000, None)) == {}  # Said twice.


def test_who_is_given_other_labels_while_it_is_silent_is_silent_still() -> None:
    world = World()
    world.alive.discard(BrokerId(5))
    note(world, (5, None, 10_000))
    wanted = AlterLabels(brokers=(BrokerId(5),), changes=(("rack", "r2"),))
    assert isinstance(world.run(wanted), LabelsAltered)
    assert world.state.cluster.silent_ms == {5: 10_000}


def test_who_registers_or_is_taken_off_is_silent_no_more() -> None:
    world = World()
    world.alive -= {BrokerId(4), BrokerId(5)}
    note(world, (4, None, 10_000), (5, None, 10_000))
    world.run(registration(4, region="west", incarnation="second"))
    assert world.state.cluster.silent_ms == {5: 10_000}
    world.run(UnregisterBroker(BrokerId(5)))
    assert world.state.cluster.silent_ms == {}


def test_what_is_taken_down_is_a_registration_like_the_one_before_it() -> None:
    """Brokers of earlier releases read that, and know nothing of silences."""
    world = World()
    world.alive -= {BrokerId(5)}
    before, known = world.state.registration(BrokerId(5)), world.state.cluster.brokers[BrokerId(5)]
    note(world, (5, None, 10_000))
    noted = world.state.registration(BrokerId(5))
    assert noted == msgspec.structs.replace(before, silent_ms=10_000)
    assert world.state.cluster.brokers[BrokerId(5)] == known
    world.run(AlterLabels(brokers=(BrokerId(5),), changes=(("rack", "r1"),)))
    assert world.state.cluster.silent_ms == {5: 10_000}
    world.alive.add(BrokerId(5))
    note(world, (5, 10_000, None))
    assert world.state.registration(BrokerId(5)).silent_ms is None


def test_since_when_a_broker_is_silent_is_kept_until_it_is_heard() -> None:
    """For people: in milliseconds since 1970, as the first controller that missed it has it."""
    world = World()
    world.alive.discard(BrokerId(5))

    def say(before_ms: int | None, silent_ms: int | None, since_ms: int | None) -> None:
        said = LastSeenNote(BrokerId(5), before_ms, silent_ms, since_ms)
        assert world.run(NoteLastSeen((said,))) == LastSeenNoted()

    say(None, 10_000, 1_700_000_000_000)
    world.run(AlterLabels(brokers=(BrokerId(5),), changes=(("rack", "r1"),)))
    assert world.state.cluster.silent_since_ms == {5: 1_700_000_000_000}
    assert world.replayed().cluster.silent_since_ms == {5: 1_700_000_000_000}
    world.alive.add(BrokerId(5))
    say(10_000, None, 1_700_000_000_000)
    assert world.state.cluster.silent_since_ms == {}


def test_what_an_earlier_release_wrote_of_a_silence_has_no_beginning() -> None:
    world = World()
    before = world.state.registration(BrokerId(5))
    noted = msgspec.structs.replace(before, silent_ms=10_000, silent_since_ms=1)
    text = msgspec.json.encode(noted).replace(b',"silent_since_ms":1', b"")
    read = decode_record(text)
    assert read == msgspec.structs.replace(before, silent_ms=10_000)
    world.state.replay(read)
    assert world.state.cluster.silent_ms == {5: 10_000}
    assert world.state.cluster.silent_since_ms == {}
