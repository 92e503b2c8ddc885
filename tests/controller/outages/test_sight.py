"""A cut link is not a dead broker. Source: design section 8; decision 0018."""

from collections.abc import Collection, Mapping

from hypothesis import given
from hypothesis import strategies as st

from strandline.controller.outages.sight import Verdict, look
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId

ZONES = ("a", "a", "b", "b", "c", "c")
BROKERS = {
    BrokerId(number): Labels(region="west", zone=zone) for number, zone in enumerate(ZONES, 1)
}
EVERYBODY = frozenset(BROKERS)


def verdicts(hears: Mapping[int, Collection[int]], controller: int = 1) -> dict[BrokerId, Verdict]:
    told = {BrokerId(one): frozenset(map(BrokerId, them)) for one, them in hears.items()}
    return {one: seen.verdict for one, seen in look(BROKERS, told, BrokerId(controller)).items()}


def zone(number: int) -> str:
    return BROKERS[BrokerId(number)].zone


def test_who_is_heard_by_all_is_heard() -> None:
    found = verdicts(dict.fromkeys(EVERYBODY, EVERYBODY))
    assert set(found.values()) == {Verdict.HEARD}


def test_who_is_heard_by_nobody_is_silent() -> None:
    alive = EVERYBODY - {5, 6}
    found = verdicts(dict.fromkeys(alive, alive))
    assert [one for one, what in found.items() if what is Verdict.SILENT] == [5, 6]


def test_a_broker_whose_link_to_the_controllers_zone_is_cut_is_not_dead() -> None:
    hears = {one: EVERYBODY - ({5, 6} if zone(one) == "a" else set()) for one in (1, 2, 3, 4)}
    found = verdicts(hears)
    assert found[BrokerId(5)] is found[BrokerId(6)] is Verdict.CUT


def test_two_zones_that_do_not_hear_outvote_one_where_the_controller_is_among_them() -> None:
    def hears(*deaf: str) -> dict[int, Collection[int]]:
        return {one: EVERYBODY - ({6} if zone(one) in deaf else set()) for one in (1, 2, 3, 4, 5)}

    assert verdicts(hears("a", "b"))[BrokerId(6)] is Verdict.SILENT
    assert verdicts(hears("b", "c"))[BrokerId(6)] is Verdict.CUT


def test_nobody_judges_himself() -> None:
    found = verdicts({1: {1, 2, 3, 4}, 3: {1, 2, 3, 4}, 5: {5}})
    assert found[BrokerId(5)] is Verdict.SILENT


@given(st.sampled_from(sorted(EVERYBODY - {1})))
def test_who_hears_nobody_and_is_heard_by_all_lives_and_makes_nobody_silent(deaf: int) -> None:
    hears: dict[int, Collection[int]] = dict.fromkeys(EVERYBODY, EVERYBODY)
    found = verdicts({**hears, deaf: {deaf}})
    cut = {one for one, verdict in found.items() if verdict is Verdict.CUT}
    # Of its zone's other broker it alone can tell for the zone; of all others that one tells.
    assert cut == {one for one in EVERYBODY - {deaf} if zone(one) == zone(deaf)}
    assert Verdict.SILENT not in found.values()
    bare = dict.fromkeys(BROKERS, Labels())
    told = {BrokerId(one): frozenset(map(BrokerId, them)) for one, them in hears.items()}
    told[BrokerId(deaf)] = frozenset({BrokerId(deaf)})
    alone = {one: seen.verdict for one, seen in look(bare, told, BrokerId(1)).items()}
    assert alone.pop(BrokerId(deaf)) is Verdict.HEARD
    assert set(alone.values()) == {Verdict.CUT}


@given(st.sampled_from(sorted(EVERYBODY - {1})))
def test_who_is_heard_by_nobody_is_silent_whomever_it_hears(mute: int) -> None:
    others = EVERYBODY - {mute}
    found = verdicts({**dict.fromkeys(others, others), mute: EVERYBODY})
    assert found.pop(BrokerId(mute)) is Verdict.SILENT
    assert set(found.values()) == {Verdict.HEARD}


def test_brokers_without_labels_look_each_for_itself() -> None:
    bare = {BrokerId(one): Labels() for one in (1, 2, 3)}
    told = {BrokerId(1): {BrokerId(1), BrokerId(2)}, BrokerId(2): set(bare)}
    assert look(bare, told, BrokerId(1))[BrokerId(3)].verdict is Verdict.CUT


@given(st.sampled_from(("ab", "bc", "ac")), st.sampled_from(sorted(EVERYBODY)))
def test_a_cut_between_two_zones_of_three_makes_nobody_silent(cut: str, controller: int) -> None:
    def heard(one: int) -> frozenset[BrokerId]:
        return frozenset(
            other
            for other in EVERYBODY
            if zone(other) == zone(one) or {zone(other), zone(one)} != set(cut)
        )

    reached = heard(controller)
    found = verdicts({one: heard(one) for one in reached}, controller)
    assert Verdict.SILENT not in found.values()


@given(st.dictionaries(st.integers(1, 6), st.sets(st.integers(1, 6)), max_size=6))
def test_silent_is_only_whom_the_controller_and_most_zones_do_not_hear(
    reports: dict[int, set[int]],
) -> None:
    hears = {**reports, 1: reports.get(1, set()) | {1}}
    for broker, verdict in verdicts(hears).items():
        others = {zone(one) for one in hears if one != broker}
        hearing = {zone(one) for one in hears if one != broker and broker in hears[one]}
        if verdict is Verdict.SILENT:
            assert broker not in hears[1] and 2 * len(hearing) < len(others)
        elif verdict is Verdict.HEARD:
            assert hearing == others
