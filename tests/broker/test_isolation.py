"""A drill cuts a broker off: only if that is enabled, for a while, and it returns by itself.

Source: docs/decisions/0019-drills.md."""

import pytest
from tests.broker.broker_world import BrokerWorld
from tests.broker.connection_world import ECHO, HELD, World, run

from strandline.broker.operations.isolation import (
    DELAY_MS_MAX,
    DELAY_MS_MIN,
    DURATION_MS_MAX,
    DURATION_MS_MIN,
    Isolation,
)
from strandline.broker.server import admission
from strandline.broker.server.admission import ISOLATE_KEY
from strandline.protocol.errors import Error
from strandline.protocol.messages.isolate_broker import (
    IsolateBrokerRequest,
    IsolateBrokerResponse,
)

DELAY_MS, DURATION_MS = 200, 5_000


@pytest.fixture
def cuts(world: BrokerWorld) -> list[tuple[int, bool]]:
    """A broker that allows drills: when it was cut off, and when no more."""
    found: list[tuple[int, bool]] = []
    isolation = Isolation(world.clock, is_enabled=True)
    isolation.cut = lambda is_cut: found.append((world.clock.monotonic_ms(), is_cut))
    world.services.isolation = isolation
    return found


def ask(
    world: BrokerWorld,
    *,
    delay_ms: int = DELAY_MS,
    duration_ms: int = DURATION_MS,
    validate_only: bool = False,
) -> IsolateBrokerResponse:
    request = IsolateBrokerRequest(delay_ms, duration_ms, validate_only)
    return world.ask(request, IsolateBrokerResponse, 0)


def test_the_cut_begins_after_the_answer_and_ends_by_itself(
    world: BrokerWorld, cuts: list[tuple[int, bool]]
) -> None:
    begun_ms = world.clock.monotonic_ms()
    assert ask(world).error_code == 0
    assert cuts == [] and not world.services.isolation.is_cut
    world.advance(DELAY_MS)
    assert cuts == [(begun_ms + DELAY_MS, True)] and world.services.isolation.is_cut
    world.advance(DURATION_MS)
    assert cuts[1:] == [(begun_ms + DELAY_MS + DURATION_MS, False)]
    assert not world.services.isolation.is_cut


def test_what_fails_while_it_is_cut_off_does_not_keep_it_from_coming_back(
    world: BrokerWorld, cuts: list[tuple[int, bool]]
) -> None:
    isolation, undone = world.services.isolation, []

    def cut(is_cut: bool) -> None:
        if is_cut:
            raise OSError(9, "no such socket")
        undone.append(is_cut)

    isolation.cut = cut
    assert ask(world).error_code == 0
    with pytest.raises(OSError, match="no such socket"):
        world.advance(DELAY_MS)
    world.advance(DURATION_MS)
    assert undone == [False] and not isolation.is_cut


def test_a_broker_that_does_not_allow_drills_is_not_cut_off(world: BrokerWorld) -> None:
    world.services.isolation.cut = lambda is_cut: pytest.fail("it was cut off")
    answer = ask(world)
    assert answer.error_code == Error.POLICY_VIOLATION
    assert answer.error_message == "its configuration allows no drills: [drills] enable"
    world.advance(DELAY_MS + DURATION_MS)


@pytest.mark.parametrize(
    ("delay_ms", "duration_ms"),
    [
        (DELAY_MS_MIN - 1, DURATION_MS),
        (DELAY_MS_MAX + 1, DURATION_MS),
        (DELAY_MS, DURATION_MS_MIN - 1),
        (DELAY_MS, DURATION_MS_MAX + 1),
    ],
)
def test_nobody_can_ask_for_a_cut_without_an_end(
    world: BrokerWorld, cuts: list[tuple[int, bool]], delay_ms: int, duration_ms: int
) -> None:
    answer = ask(world, delay_ms=delay_ms, duration_ms=duration_ms)
    assert answer.error_code == Error.INVALID_REQUEST
    world.advance(DELAY_MS_MAX + DURATION_MS_MAX)
    assert cuts == []


def test_a_question_only_cuts_nothing_off(world: BrokerWorld, cuts: list[tuple[int, bool]]) -> None:
    assert ask(world, validate_only=True).error_code == 0
    assert ask(world, delay_ms=0, validate_only=True).error_code == Error.INVALID_REQUEST
    world.advance(DELAY_MS_MAX + DURATION_MS_MAX)
    assert cuts == []


def test_one_drill_at_a_time_and_the_next_after_it(
    world: BrokerWorld, cuts: list[tuple[int, bool]]
) -> None:
    assert ask(world).error_code == 0
    assert ask(world, duration_ms=DURATION_MS_MAX).error_code == Error.INVALID_REQUEST
    world.advance(DELAY_MS + DURATION_MS)
    assert [is_cut for _, is_cut in cuts] == [True, False]
    assert ask(world).error_code == 0
    world.advance(DELAY_MS)
    assert cuts[-1][1]


def test_a_broker_that_ends_begins_no_cut(world: BrokerWorld, cuts: list[tuple[int, bool]]) -> None:
    assert ask(world).error_code == 0
    world.services.isolation.stop()
    world.advance(DELAY_MS + DURATION_MS)
    assert cuts == []


def end(world: BrokerWorld) -> IsolateBrokerResponse:
    return world.ask(IsolateBrokerRequest(ends=True), IsolateBrokerResponse, 1)


def test_a_cut_ends_before_its_time_on_request(
    world: BrokerWorld, cuts: list[tuple[int, bool]]
) -> None:
    assert ask(world).error_code == 0
    world.advance(DELAY_MS)
    answer = end(world)
    assert (answer.error_code, answer.was_in_drill) == (0, True)
    assert [is_cut for _, is_cut in cuts] == [True, False]
    assert not world.services.isolation.is_cut
    world.advance(DURATION_MS)
    assert len(cuts) == 2  # The timer that would have ended it ends nothing later.
    assert ask(world).error_code == 0


def test_a_drill_that_has_not_begun_never_begins_on_request(
    world: BrokerWorld, cuts: list[tuple[int, bool]]
) -> None:
    assert ask(world).error_code == 0
    assert end(world).was_in_drill
    world.advance(DELAY_MS + DURATION_MS)
    assert cuts == [] and ask(world).error_code == 0


def test_where_there_is_no_drill_none_ends(
    world: BrokerWorld, cuts: list[tuple[int, bool]]
) -> None:
    assert not end(world).was_in_drill and cuts == []


def test_a_broker_that_is_cut_off_takes_the_request_that_ends_it_and_no_other() -> None:
    async def scenario(world: World) -> None:
        world.server.refuse(is_refusing=True)
        other = await world.connect()
        other.send(ECHO, 1, b"x")
        assert await other.is_closed()
        ending = await world.connect()
        ending.send(ISOLATE_KEY, 2)
        assert (await ending.receive())[0] == 2
        ending.send(ECHO, 3, b"x")  # Nor any other after it.
        assert await ending.is_closed()
        assert len(world.desk.seen) == 1

    run(scenario)


def test_a_broker_that_is_cut_off_keeps_few_connections_open_and_not_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "REFUSED_OPEN_MAX", 2)
    monkeypatch.setattr(admission, "REFUSED_OPEN_MS", 50)

    async def scenario(world: World) -> None:
        world.server.refuse(is_refusing=True)
        for _ in range(5):
            silent = await world.connect()
            assert world.server.connection_count <= 2
        assert await silent.is_closed()
        idle = await world.connect()
        assert await idle.is_closed()

    run(scenario)


def test_a_server_that_refuses_closes_what_there_is_and_what_comes_and_then_serves_again() -> None:
    async def scenario(world: World) -> None:
        known = await world.connect()
        known.send(HELD, 1)
        await world.desk.wait_seen(1)
        world.server.refuse(is_refusing=True)
        assert await known.reader.read() == b""
        late = await world.connect()
        late.send(ECHO, 1)
        assert await late.reader.read() == b""
        assert world.server.connection_count == 0
        world.server.refuse(is_refusing=False)
        again = await world.connect()
        again.send(ECHO, 2, b"x")
        assert (await again.receive())[0] == 2

    run(scenario)
