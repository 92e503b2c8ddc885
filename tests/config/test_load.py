"""A broker's file: what is read, what is refused, and in which words (STYLE, "Configuration")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.errors import OperatorError
from strandline.config.addresses import Seed
from strandline.config.broker import BROKER_KEYS, BrokerConfig, LabelsSection
from strandline.config.keys import format_value
from strandline.config.load import load_broker_config, read_broker_config, variable_name
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId

LEAST = """
[broker]
id = 2
data_directory = "/data/2"

[cluster]
seeds = ["1@10.0.0.1:33145", "2@127.0.0.1:33145"]
"""


def load(text: str, **environment: str) -> BrokerConfig:
    return load_broker_config(text, file="broker.toml", environment=environment)


def refusals(text: str, **environment: str) -> list[str]:
    config, mistakes = read_broker_config(text, file="broker.toml", environment=environment)
    assert config is None
    return [str(mistake) for mistake in mistakes]


def test_the_least_file_gives_every_default() -> None:
    config = load(LEAST)
    assert config.broker_id == 2
    assert config.labels == LabelsSection()
    assert config.kafka_advertised == Address("127.0.0.1", 9092)
    assert config.rpc_advertised == Address("127.0.0.1", 33145)
    assert config.seeds == (
        Seed(BrokerId(1), Address("10.0.0.1", 33145)),
        Seed(BrokerId(2), Address("127.0.0.1", 33145)),
    )
    assert config.peer_rtt_ms == {}


def test_a_broker_need_not_be_a_seed() -> None:
    config = load(LEAST.replace("id = 2", "id = 7").replace(', "2@127.0.0.1:33145"', ""))
    assert config.broker_id not in {seed.id for seed in config.seeds}


def test_the_environment_wins_over_the_file() -> None:
    config = load(
        LEAST,
        STRANDLINE_BROKER__ID="1",
        STRANDLINE_BROKER__LABELS__REGION="east",
        STRANDLINE_CLUSTER__SEEDS="1@127.0.0.1:33145, 3@[::1]:7",
        STRANDLINE_STORAGE__PREALLOCATE="False",
    )
    assert config.broker_id == 1
    assert config.labels.region == "east"
    assert config.seeds[1] == Seed(BrokerId(3), Address("::1", 7))
    assert config.storage.preallocate is False


def test_the_environment_alone_is_enough() -> None:
    config = load(
        "",
        STRANDLINE_BROKER__ID="1",
        STRANDLINE_BROKER__DATA_DIRECTORY="/d",
        STRANDLINE_CLUSTER__SEEDS="1@127.0.0.1:33145",
    )
    assert config.broker.data_directory == "/d"


def test_other_environment_variables_are_nobodys_business() -> None:
    load(LEAST, STRANDLINE_BOOTSTRAP="x", STRANDLINE_PORT_9092_TCP="tcp://10.0.0.1:9092", HOME="/")


def test_an_unknown_key_is_refused_with_the_nearest_name() -> None:
    assert refusals(LEAST + "[listener]\nkafka_prot = 1\n") == [
        "broker.toml: [listener] kafka_prot: unknown key (did you mean kafka_port?)"
    ]


def test_the_two_spellings_of_a_listener_are_told_apart() -> None:
    assert refusals(LEAST + "[listener]\nbind = '127.0.0.1:9092'\n") == [
        "broker.toml: [listener] bind: unknown key"
        " (it belongs under [[listener]], which takes the place of [listener])"
    ]
    assert refusals(LEAST + "[listener]\nhost = '127.0.0.1'\n") == [
        "broker.toml: [listener] host: unknown key (did you mean kafka_host?)"
    ]
    entry = "[[listener]]\nname = 'A'\nbind = '127.0.0.1:9092'\nkafka_port = 9092\n"
    assert refusals(LEAST + entry) == [
        "broker.toml: [[listener]] A kafka_port: unknown key"
        " (it belongs under [listener]: here write bind or advertised)"
    ]


def test_an_unknown_section_is_refused_with_the_nearest_name() -> None:
    assert refusals(LEAST + "[listner]\nkafka_port = 1\n") == [
        "broker.toml: [listner]: unknown section (did you mean listener?)"
    ]


def test_a_key_under_the_wrong_section_is_told_where_it_belongs() -> None:
    assert refusals(LEAST + "[rpc]\nkafka_port = 9\n") == [
        "broker.toml: [rpc] kafka_port: unknown key (it belongs under [listener])"
    ]
    assert refusals("data_directory = '/x'\n" + LEAST) == [
        "broker.toml: data_directory: unknown key (it belongs under [broker])"
    ]


def test_an_unknown_variable_is_refused_with_the_nearest_name() -> None:
    assert refusals(LEAST, STRANDLINE_BROKER__IDD="3") == [
        "environment: STRANDLINE_BROKER__IDD: unknown key (did you mean STRANDLINE_BROKER__ID?)"
    ]


def test_what_must_be_given_and_is_not_is_named_with_an_example() -> None:
    assert refusals("") == [
        "broker.toml: [broker] id: is missing; give for example id = 1",
        "broker.toml: [broker] data_directory: is missing; give for example "
        'data_directory = "/var/lib/strandline"',
        'broker.toml: [cluster] seeds: is missing; give for example seeds = ["1@127.0.0.1:33145"]',
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('[listener]\nkafka_port = "9092"', "kafka_port: must be a whole number, not '9092'"),
        ("[listener]\nkafka_port = true", "kafka_port: must be a whole number, not True"),
        ("[listener]\nkafka_port = 0", "kafka_port: must be 1 to 65535, not 0"),
        ("[listener]\nkafka_host = 1", "kafka_host: must be a string in quotes, not 1"),
        ("[storage]\npreallocate = 1", "preallocate: must be true or false, not 1"),
        ("[dev]\npeer_rtt = [1]", "peer_rtt: must be a list of strings, not [1]"),
        ('[dev]\npeer_rtt = ["x=1"]', "peer_rtt: must look like id=milliseconds, not 'x=1'"),
        ('[dev]\npeer_rtt = ["1=1", "1=2"]', "peer_rtt: names a broker twice"),
        ('[dev]\npeer_rtt = ["2=1"]', "peer_rtt: names broker 2, which is this one"),
        (
            '[log]\nlevel = "loud"',
            "level: must be debug, info, warning or error, not 'loud'",
        ),
        (
            '[listener]\nkafka_host = "a b"',
            "kafka_host: must be a host name or an IP address, not 'a b'",
        ),
        ('[listener]\nkafka_host = "east..example"', "kafka_host: must be a host name or an IP"),
        (f'[listener]\nkafka_host = "{"x" * 64}.y"', "kafka_host: must be a host name or an IP"),
        ('[log]\nfile = "/var/log/\\u0000"', "file: must be printable text, not '/var/log/\\x00'"),
        (
            "[replication]\nheartbeat_interval_ms = 500",
            "election_timeout_ms: must be at least 3 x heartbeat_interval_ms = 1500, not 800",
        ),
        (
            "[replication]\nappend_bytes_max = 20000000",
            "inflight_bytes_max: must be at least append_bytes_max = 20000000, not 16777216",
        ),
        (
            '[listener]\nkafka_host = "0.0.0.0"\n[security]\ninsecure = true',
            "advertised_host: must be given when kafka_host is 0.0.0.0: no client can reach that",
        ),
        ("[rpc]\nport = 9092", "port: must differ from [listener] kafka_port, which is 9092 too"),
        ("[limits]\nrequest_bytes_max = 200000000", "inflight_bytes_max: must be at least"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(line: str, reason: str) -> None:
    found = refusals(LEAST + line + "\n")
    assert reason in found[0]
    assert all("\n" not in one for one in found)


@pytest.mark.parametrize(
    ("seeds", "reason"),
    [
        ("[]", "is empty"),
        ('["127.0.0.1:1"]', "must look like id@host:port, not '127.0.0.1:1'"),
        ('["1@127.0.0.1"]', "must look like host:port, not '127.0.0.1'"),
        ('["1@127.0.0.1:70000"]', "has a port outside 1 to 65535"),
        ('["1@a:1", "1@b:1"]', "gives the id 1 twice"),
        ('["1@a:1", "3@a:1"]', "gives the address a:1 twice"),
        ('["1@a:1", "2@b:1"]', "names this broker as 2@b:1, but [rpc] advertises 127.0.0.1:33145"),
        (
            '["1@127.0.0.1:33145"]',
            "gives this broker's rpc address 127.0.0.1:33145 to broker 1",
        ),
    ],
)
def test_seeds_that_cannot_work_are_refused(seeds: str, reason: str) -> None:
    text = f'[broker]\nid = 2\ndata_directory = "/d"\n[cluster]\nseeds = {seeds}\n'
    assert reason in refusals(text)[0]


def test_labels_that_cannot_stand_in_a_path_are_refused() -> None:
    for label in ("a/b", "-a", "a b", "a" * 64, "ü"):
        assert "region: must be 1 to 63 of" in refusals(
            LEAST + f'[broker.labels]\nregion = "{label}"\n'
        )[0].replace("[broker.labels] ", "")


def test_text_that_is_not_toml_is_one_line() -> None:
    (line,) = refusals("[broker\n")
    assert line.startswith("broker.toml: is not TOML: ")


def test_load_raises_the_first_mistake_and_counts_the_rest() -> None:
    with pytest.raises(OperatorError) as caught:
        load("[listener]\nkafka_prot = 1\n")
    assert str(caught.value) == (
        "broker.toml: [listener] kafka_prot: unknown key (did you mean kafka_port?) "
        "(and 3 more: `strandline config check broker.toml` lists all)"
    )


def test_every_key_can_be_set_by_its_variable() -> None:
    given = {
        variable_name(*row.name.rsplit(".", 1)): format_value(row.default)
        for row in BROKER_KEYS
        if row.default is not None
    }
    assert load(LEAST, **given) == load(LEAST)
    assert len(given) == len(BROKER_KEYS) - 3


@given(st.text(max_size=200))
def test_no_text_makes_the_loader_crash(text: str) -> None:
    config, mistakes = read_broker_config(text, file="f", environment={})
    assert config is None and mistakes


def test_the_network_name_is_the_cluster_id_or_the_seeds_in_any_order() -> None:
    turned = LEAST.replace(
        '"1@10.0.0.1:33145", "2@127.0.0.1:33145"', '"2@127.0.0.1:33145", "1@10.0.0.1:33145"'
    )
    assert load(LEAST).network_name == load(turned).network_name
    assert load(LEAST, STRANDLINE_CLUSTER__ID="x").network_name == "x"
