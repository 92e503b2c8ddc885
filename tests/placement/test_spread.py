"""Replicas are spread over what may fail together, leaders over who may lead (design section 7)."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.errors import ApiError
from strandline.model.cluster import Address, Broker, Labels
from strandline.model.ids import BrokerId
from strandline.placement.spread import Load, Replicas, domains_of, place

THREE_REGIONS = ("east", "east", "west", "west", "south")


def make_broker(number: int, *path: str) -> Broker:
    region, zone, rack, host = (*path, "", "", "", "")[:4]
    return Broker(
        id=BrokerId(number),
        incarnation="a",
        rpc=Address("127.0.0.1", 10_000 + number),
        kafka=Address("127.0.0.1", 20_000 + number),
        labels=Labels(region=region, zone=zone, rack=rack, host=host),
    )


def brokers_in(*regions: str) -> list[Broker]:
    return [make_broker(number, region) for number, region in enumerate(regions, start=1)]


def place_on(
    brokers: list[Broker],
    partitions: int,
    replication_factor: int,
    *,
    seed: int = 1,
    load: Load | None = None,
    avoid: tuple[int, ...] = (),
) -> list[Replicas]:
    return place(
        brokers,
        partitions=partitions,
        replication_factor=replication_factor,
        rng=random.Random(seed),
        load=load or Load(),
        avoid=tuple(BrokerId(number) for number in avoid),
    )


def regions_of(brokers: list[Broker], replicas: Replicas) -> Counter[str]:
    labels = {broker.id: broker.labels.region for broker in brokers}
    return Counter(labels[broker] for broker in replicas)


def test_five_replicas_over_five_brokers_are_everywhere_and_leaders_rotate() -> None:
    brokers = brokers_in(*THREE_REGIONS)
    placed = place_on(brokers, 10, 5)
    assert all(sorted(replicas) == [1, 2, 3, 4, 5] for replicas in placed)
    assert Counter(replicas[0] for replicas in placed) == {1: 2, 2: 2, 3: 2, 4: 2, 5: 2}
    assert sorted(replicas[0] for replicas in placed[:5]) == [1, 2, 3, 4, 5]


def test_three_replicas_over_three_regions_are_one_in_each() -> None:
    brokers = brokers_in(*THREE_REGIONS)
    for replicas in place_on(brokers, 60, 3):
        assert regions_of(brokers, replicas) == {"east": 1, "west": 1, "south": 1}


def test_no_region_holds_most_replicas_when_another_has_room() -> None:
    brokers = brokers_in("east", "east", "east", "east", "west", "south")
    for replicas in place_on(brokers, 30, 4):
        assert regions_of(brokers, replicas) == {"east": 2, "west": 1, "south": 1}


def test_zones_and_racks_within_a_region_are_spread_too() -> None:
    paths = [("east", zone, rack) for zone in "ab" for rack in "xy" for _ in range(2)]
    brokers = [make_broker(number, *path) for number, path in enumerate(paths)]
    for replicas in place_on(brokers, 40, 4):
        domains = {broker.id: domains_of(broker) for broker in brokers}
        assert Counter(domains[b][1] for b in replicas) == {("east", "a"): 2, ("east", "b"): 2}
        assert len({domains[broker][2] for broker in replicas}) == 4


def test_a_zone_of_the_same_name_in_two_regions_is_two_zones() -> None:
    brokers = [
        make_broker(1, "east", "a"),
        make_broker(2, "east", "b"),
        make_broker(3, "west", "a"),
    ]
    for replicas in place_on(brokers, 20, 2):
        assert BrokerId(3) in replicas


def test_the_extra_leader_goes_to_the_region_that_has_fewest() -> None:
    brokers = brokers_in(*THREE_REGIONS)
    for seed in range(20):
        leaders = Counter(replicas[0] for replicas in place_on(brokers, 6, 3, seed=seed))
        assert leaders[BrokerId(5)] == 2


def test_consecutive_leaders_alternate_between_regions() -> None:
    brokers = brokers_in("east", "east", "west", "west")
    placed = place_on(brokers, 4, 3)
    first = [regions_of(brokers, replicas[:1]).popitem()[0] for replicas in placed]
    assert set(first[:2]) == {"east", "west"} and set(first[2:]) == {"east", "west"}


def test_new_topics_go_to_the_least_loaded_brokers() -> None:
    brokers = brokers_in("east", "east", "east", "east")
    busy = Load.of([(BrokerId(1), BrokerId(2))] * 5)
    for seed in range(20):
        (replicas,) = place_on(brokers, 1, 2, seed=seed, load=busy)
        assert set(replicas) == {3, 4}


def test_many_topics_of_one_partition_share_the_leadership() -> None:
    brokers = brokers_in(*THREE_REGIONS)
    rng, load = random.Random(5), Load()
    for _ in range(50):
        (replicas,) = place(brokers, partitions=1, replication_factor=3, rng=rng, load=load)
        load.add(replicas)
    assert Counter(load.leaders) == {1: 10, 2: 10, 3: 10, 4: 10, 5: 10}


def test_a_wide_topic_on_an_uneven_cluster_still_rotates_its_own_leaders() -> None:
    brokers = brokers_in("east", "east", "east")
    busy = Load.of([(BrokerId(1),), (BrokerId(2),)] * 50)
    leaders = Counter(replicas[0] for replicas in place_on(brokers, 6, 2, load=busy))
    assert leaders == {1: 2, 2: 2, 3: 2}


def test_brokers_to_be_avoided_are_taken_last_and_never_lead_while_others_can() -> None:
    brokers = brokers_in(*THREE_REGIONS)
    for replicas in place_on(brokers, 20, 4, avoid=(1, 3)):
        assert set(replicas[:3]) == {2, 4, 5}
        assert replicas[3] in (1, 3)


def test_more_replicas_than_brokers_are_refused_with_what_to_do() -> None:
    with pytest.raises(ApiError) as refused:
        place_on(brokers_in("east", "west"), 1, 3)
    assert refused.value.code == 38
    assert "start more brokers or ask for at most 2" in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.parametrize("factor", [0, -1, -9])
def test_a_replication_factor_below_one_is_refused(factor: int) -> None:
    with pytest.raises(ApiError) as refused:
        place_on(brokers_in("east"), 1, factor)
    assert refused.value.code == 38


@pytest.mark.parametrize("partitions", [0, -9])
def test_no_partitions_are_refused(partitions: int) -> None:
    with pytest.raises(ApiError) as refused:
        place_on(brokers_in("east"), partitions, 1)
    assert refused.value.code == 37


CLUSTERS = st.lists(
    st.tuples(st.sampled_from("EWS"), st.sampled_from("ab"), st.sampled_from("xy")),
    min_size=1,
    max_size=9,
).map(lambda paths: [make_broker(number, *path) for number, path in enumerate(paths)])


@st.composite
def requests(draw: st.DrawFn) -> tuple[list[Broker], int, int, int]:
    brokers = draw(CLUSTERS)
    factor = draw(st.integers(1, len(brokers)))
    return brokers, draw(st.integers(1, 24)), factor, draw(st.integers(0, 1000))


def is_filled_evenly(count: Counter[str], room: Counter[str]) -> bool:
    """No domain has two replicas more than one that still has room."""
    return all(
        count[fuller] - count[emptier] <= 1
        for fuller in room
        for emptier in room
        if count[emptier] < room[emptier]
    )


@given(requests())
def test_replicas_are_distinct_and_even_over_regions_and_their_zones(
    request: tuple[list[Broker], int, int, int],
) -> None:
    brokers, partitions, factor, seed = request
    paths = {broker.id: domains_of(broker) for broker in brokers}
    placed = place_on(brokers, partitions, factor, seed=seed)
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        regions = Counter(paths[broker][0][0] for broker in replicas)
        assert is_filled_evenly(regions, Counter(path[0][0] for path in paths.values()))
        for region in regions:
            zones = Counter(paths[b][1][1] for b in replicas if paths[b][0] == (region,))
            room = Counter(path[1][1] for path in paths.values() if path[0] == (region,))
            assert is_filled_evenly(zones, room)


@given(requests())
def test_leaders_are_even_over_brokers(request: tuple[list[Broker], int, int, int]) -> None:
    brokers, partitions, factor, seed = request
    leaders = Counter(r[0] for r in place_on(brokers, partitions, factor, seed=seed))
    counts = [leaders[broker.id] for broker in brokers]
    assert max(counts) - min(counts) <= 1


@given(requests())
def test_brokers_that_are_alike_carry_alike(request: tuple[list[Broker], int, int, int]) -> None:
    brokers, partitions, factor, seed = request
    load = Load.of(place_on(brokers, partitions, factor, seed=seed))
    by_path: dict[tuple[str, ...], list[int]] = {}
    for broker in brokers:
        by_path.setdefault(domains_of(broker)[-1], []).append(load.replicas[broker.id])
    assert all(max(counts) - min(counts) <= 2 for counts in by_path.values())


@given(requests())
def test_one_seed_gives_one_answer(request: tuple[list[Broker], int, int, int]) -> None:
    brokers, partitions, factor, seed = request
    first = place_on(brokers, partitions, factor, seed=seed)
    assert place_on(brokers[::-1], partitions, factor, seed=seed) == first
