"""What `dev start` makes of its command line, before anything is written."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.errors import OperatorError
from strandline.cli.dev.cluster_file import ClusterDirectory, render_config
from strandline.cli.dev.plan import (
    Plan,
    format_rtt,
    merge_settings,
    parse_regions,
    parse_rtt,
    parse_settings,
    plan_brokers,
)
from strandline.config.load import load_broker_config
from strandline.model.cluster import Address

REGIONS = {"east": 2, "west": 2, "south": 1}


def make_plan(**regions: int) -> Plan:
    brokers = plan_brokers(regions or REGIONS, port_base=20_000, is_free=lambda port: True)
    return Plan(cluster_id="c", brokers=brokers)


def test_brokers_count_from_1_region_by_region_with_ports_from_the_base() -> None:
    plan = make_plan()
    assert [(one.id, one.region, one.kafka_port, one.rpc_port) for one in plan.brokers] == [
        (1, "east", 20_000, 20_100),
        (2, "east", 20_001, 20_101),
        (3, "west", 20_002, 20_102),
        (4, "west", 20_003, 20_103),
        (5, "south", 20_004, 20_104),
    ]
    assert plan.bootstrap.startswith("127.0.0.1:20000,127.0.0.1:20001,")
    assert plan.regions == REGIONS


def test_ports_that_are_taken_are_passed_over_the_same_way_every_time() -> None:
    taken = {20_000, 20_002, 20_101}
    plan = plan_brokers({"a": 3}, port_base=20_000, is_free=lambda port: port not in taken)
    assert [one.kafka_port for one in plan] == [20_001, 20_003, 20_004]
    assert [one.rpc_port for one in plan] == [20_100, 20_102, 20_103]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 30), min_size=1),
    st.sets(st.integers(20_000, 20_300)),
)
def test_no_port_is_given_twice_and_none_that_is_taken(
    regions: dict[str, int], taken: set[int]
) -> None:
    brokers = plan_brokers(regions, port_base=20_000, is_free=lambda port: port not in taken)
    ports = [port for one in brokers for port in (one.kafka_port, one.rpc_port)]
    assert len(set(ports)) == len(ports) == 2 * sum(regions.values())
    assert not taken & set(ports)


def test_a_base_without_enough_ports_above_it_is_refused() -> None:
    with pytest.raises(OperatorError, match="--port-base 65000: too few free ports"):
        plan_brokers({"a": 2}, port_base=65_000, is_free=lambda port: False)


@pytest.mark.parametrize(
    ("regions", "voters"),
    [
        ({"east": 1}, [1]),
        ({"east": 2}, [1]),
        ({"east": 3}, [1, 2, 3]),
        ({"east": 2, "west": 2}, [1, 2, 3]),
        (REGIONS, [1, 2, 3, 4, 5]),
        ({"a": 3, "b": 3, "c": 3}, [1, 2, 4, 5, 7]),
    ],
)
def test_voters_are_odd_at_most_five_and_from_every_region(
    regions: dict[str, int], voters: list[int]
) -> None:
    assert [one.id for one in make_plan(**regions).voters] == voters


def test_regions_are_read_in_order() -> None:
    assert list(parse_regions("west=2, east,us-south-1=3").items()) == [
        ("west", 2),
        ("east", 1),
        ("us-south-1", 3),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "0 brokers: expected 1"),
        ("east=0", "'east=0': expected name=brokers"),
        ("east=two", "'east=two': expected name=brokers"),
        ("=2", "a region must have a name"),
        ("ea/st=2", "a region must be 1 to 63 of"),
        ("east=1,east=2", "east is given twice"),
        ("a=60,b=60", "120 brokers: expected 1"),
    ],
)
def test_regions_that_make_no_sense_are_refused(text: str, reason: str) -> None:
    with pytest.raises(OperatorError, match="--regions: ") as caught:
        parse_regions(text)
    assert reason in str(caught.value)


def test_round_trips_hold_both_ways_round() -> None:
    links = parse_rtt("west-east=30, east-south=80,east-east=1", REGIONS)
    assert links == {("east", "west"): 30, ("east", "south"): 80, ("east", "east"): 1}
    plan = replace(make_plan(), rtt_ms=links)
    by_id = {one.id: one for one in plan.brokers}
    assert plan.link_rtt_ms(by_id[1], by_id[3]) == plan.link_rtt_ms(by_id[3], by_id[1]) == 30
    assert plan.link_rtt_ms(by_id[1], by_id[2]) == 1
    assert plan.link_rtt_ms(by_id[3], by_id[5]) == 0
    assert parse_rtt(format_rtt(links), REGIONS) == links


def test_region_names_may_have_hyphens() -> None:
    regions = {"us-east": 1, "eu-west-1": 1}
    assert parse_rtt("us-east-eu-west-1=90", regions) == {("eu-west-1", "us-east"): 90}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("east-west", "expected region-region=milliseconds"),
        ("east-west=-1", "expected region-region=milliseconds"),
        ("east-west=3.5", "expected region-region=milliseconds"),
        ("east-west=99999", "expected region-region=milliseconds"),
        ("east-wst=1", "'east-wst' is not a link between two regions (did you mean west?)"),
        ("east=1", "'east' is not a link between two regions"),
        ("east-west=1,west-east=2", "link west-east is given twice"),
    ],
)
def test_round_trips_that_make_no_sense_are_refused(text: str, reason: str) -> None:
    with pytest.raises(OperatorError, match="--rtt: ") as caught:
        parse_rtt(text, REGIONS)
    assert reason in str(caught.value)


def test_settings_are_typed_and_merged_key_by_key() -> None:
    first = parse_settings(["replication.election_timeout_ms=500", "log.level=debug"])
    assert first == {"replication": {"election_timeout_ms": 500}, "log": {"level": "debug"}}
    merged = merge_settings(first, parse_settings(["log.level=error", "log.format=json"]))
    assert merged == {
        "replication": {"election_timeout_ms": 500},
        "log": {"level": "error", "format": "json"},
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("log.level", ": expected section.key=value"),
        ("log.levle=debug", "log.levle: unknown key (did you mean log.level?)"),
        ("log.level=loud", "log.level: must be debug, info, warning or error, not 'loud'"),
        ("broker.id=3", "broker.id: not allowed: each broker of a local cluster has its own"),
    ],
)
def test_settings_that_make_no_sense_are_refused(text: str, reason: str) -> None:
    with pytest.raises(OperatorError) as caught:
        parse_settings([text])
    assert reason in str(caught.value)


def test_brokers_and_regions_that_are_not_there_are_named() -> None:
    plan = make_plan()
    with pytest.raises(
        OperatorError, match=r"no broker 9 in this cluster; its brokers: 1, 2, 3, 4, 5"
    ):
        plan.broker(9)
    with pytest.raises(
        OperatorError, match=r"no region 'north' in this cluster; its regions: east, "
    ):
        plan.brokers_in("north")


def test_the_rendered_file_is_what_the_broker_reads() -> None:
    plan = replace(
        make_plan(),
        rtt_ms=parse_rtt("east-west=30,east-south=80", REGIONS),
        settings=parse_settings(["storage.preallocate=false", "log.level=debug"]),
    )
    for broker in plan.brokers:
        text = render_config(plan, broker, data=Path('/tmp/a "b"/data'))
        config = load_broker_config(text, file="config.toml")
        assert config.broker_id == broker.id
        assert config.broker.data_directory == '/tmp/a "b"/data'
        assert config.labels.region == broker.region
        assert config.cluster.id == "c"
        assert config.kafka_advertised == Address("127.0.0.1", broker.kafka_port)
        assert config.rpc_advertised == Address("127.0.0.1", broker.rpc_port)
        assert len(config.seeds) == 5
        assert config.storage.preallocate is False
        assert config.log.level == "debug"
        expected = {
            peer.id: rtt for peer in plan.brokers if (rtt := plan.link_rtt_ms(broker, peer))
        }
        assert config.peer_rtt_ms == expected
    assert config.peer_rtt_ms == {1: 80, 2: 80}


def test_each_broker_has_a_port_for_metrics_of_its_own() -> None:
    plan = replace(make_plan(), settings=parse_settings(["metrics.port=9404", "metrics.host=::1"]))
    for broker in plan.brokers:
        config = load_broker_config(render_config(plan, broker, data=Path("/d")), file="f")
        assert (config.metrics.host, config.metrics.port) == ("::1", 9403 + broker.id)
    off = load_broker_config(render_config(make_plan(), broker, data=Path("/d")), file="f")
    assert off.metrics.port == 0


def test_a_cluster_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    directory = ClusterDirectory(tmp_path / "deep" / "cluster")
    assert directory.read() is None
    plan = replace(
        make_plan(),
        rtt_ms=parse_rtt("east-west=30", REGIONS),
        settings=parse_settings(
            ["replication.election_timeout_ms=500", "storage.preallocate=true"]
        ),
    )
    directory.write(plan)
    directory.write_configs(plan)
    assert directory.read() == plan
    assert sorted(one.name for one in directory.path.iterdir()) == [
        "broker-1",
        "broker-2",
        "broker-3",
        "broker-4",
        "broker-5",
        "cluster.json",
    ]


def test_a_directory_without_a_cluster_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="no cluster here; to create one: strandline dev start"):
        ClusterDirectory(tmp_path).require()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 1, "brokers": [1], "rtt": ""}'])
def test_a_damaged_cluster_file_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(OperatorError, match=r"is damaged: remove .* and start a new cluster"):
        ClusterDirectory(tmp_path).require()
