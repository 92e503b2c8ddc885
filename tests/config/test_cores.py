"""The brokers of a machine, from one file: what differs, what does not, and what is refused.

Source: docs/operating/cores.md; docs/decisions/0071-cores.md."""

from pathlib import Path

import pytest

from strandline.config.broker import BrokerConfig
from strandline.config.cores import broken_machine_rules, derive_brokers, machine_ports
from strandline.config.load import load_broker_config
from strandline.model.cluster import Address

PAGE = Path(__file__).parents[2] / "docs" / "operating" / "cores.md"
FILE = """
[broker]
id = 100
data_directory = "/data"
[cluster]
id = "c"
seeds = ["100@node-1:33145", "200@node-2:33145"]
[rpc]
advertised_host = "node-1"
"""
TLS = """
tls = "require"
certificate = "/etc/peer-{id}.pem"
private_key = "/etc/peer-{id}.key"
trust = "/etc/peers-ca.pem"
"""
LISTENERS = """
[[listener]]
name = "INNER"
bind = "127.0.0.1:9092"
[[listener]]
name = "PUBLIC"
bind = "0.0.0.0:9192"
advertised = "node-1.example:19192"
advertised_for = ["10.0.0.0/8=10.1.2.3:9192", "2001:db8::/32=[2001:db8::3]:9192"]
protocol = "SASL_SSL"
certificate = "/etc/node-1.pem"
private_key = "/etc/node-1.key"
"""


def config_of(more: str = "") -> BrokerConfig:
    return load_broker_config(FILE + more, file="f", environment={})


def mistakes(config: BrokerConfig, count: int) -> list[str]:
    return [f"{key} {reason}" for key, reason in broken_machine_rules(config, count)]


def test_each_broker_has_an_id_ports_and_a_directory_of_its_own() -> None:
    config = config_of("[metrics]\nport = 9404\n[tiered]\ncache_directory = '/cache'\n")
    assert mistakes(config, 3) == []
    brokers = derive_brokers(config, 3)
    assert [one.broker.id for one in brokers] == [100, 101, 102]
    assert [one.kafka_bind.port for one in brokers] == [9092, 9093, 9094]
    assert [one.rpc_advertised for one in brokers] == [
        Address("node-1", port) for port in (33145, 33146, 33147)
    ]
    # The machine has the port of the file.
    assert [one.metrics.port for one in brokers] == [9405, 9406, 9407]
    assert [one.broker.data_directory for one in brokers] == [
        "/data/broker-100", "/data/broker-101", "/data/broker-102",
    ]  # fmt: skip
    assert brokers[1].tiered.cache_directory == "/cache/broker-101"
    ports = [one.bind.port for one in machine_ports(config, brokers)]
    assert len(set(ports)) == len(ports) == 1 + 3 * 3


def test_all_else_is_as_in_the_file_and_nothing_depends_on_the_number_of_brokers() -> None:
    config = config_of(LISTENERS)
    assert derive_brokers(config, 2) == derive_brokers(config, 7)[:2]
    (only,) = derive_brokers(config, 1)
    assert only.listener_entries == config.listener_entries
    assert (only.cluster, only.security, only.access) == (
        config.cluster, config.security, config.access,
    )  # fmt: skip
    assert [one.metrics.port for one in derive_brokers(config, 2)] == [0, 0]


def test_every_address_of_a_listener_moves_and_its_protection_stays() -> None:
    config = config_of(TLS + LISTENERS)
    assert mistakes(config, 4) == []
    inner, public = derive_brokers(config, 4)[3].listeners
    assert inner.bind == inner.advertised == Address("127.0.0.1", 9095)
    assert (public.bind, public.advertised) == (
        Address("0.0.0.0", 9195), Address("node-1.example", 19195),
    )  # fmt: skip
    assert [one.address for one in public.endpoint.near] == [
        Address("10.1.2.3", 9195), Address("2001:db8::3", 9195),
    ]  # fmt: skip
    assert public.protocol == "SASL_SSL" and public.entry is not None
    assert public.entry.certificate == "/etc/node-1.pem"


def test_each_broker_shows_the_certificate_that_names_it() -> None:
    second = derive_brokers(config_of(TLS), 2)[1]
    assert (second.rpc.certificate, second.rpc.private_key, second.rpc.trust) == (
        "/etc/peer-101.pem", "/etc/peer-101.key", "/etc/peers-ca.pem",
    )  # fmt: skip
    shared = config_of(TLS.replace("peer-{id}.pem", "peer.pem"))
    assert mistakes(shared, 1) == []
    (told,) = mistakes(shared, 2)
    assert told.startswith("[rpc] certificate must have {id} in its name with --cores 2")


def test_files_that_a_broker_renames_are_not_shared() -> None:
    for given, own in (
        ("/log/audit.jsonl", "/log/audit-101.jsonl"),
        ("/log.d/audit", "/log.d/audit-101"),
        ("audit.log.1", "audit.log-101.1"),
        ("/log/.audit", "/log/.audit-101"),
    ):
        audit = derive_brokers(config_of(f"[access]\naudit_file = '{given}'\n"), 2)[1]
        assert audit.access.audit_file == own
    named = config_of("[access]\naudit_file = '/log/{id}/audit'\n[log]\nfile = '/log/{id}.log'\n")
    assert derive_brokers(named, 2)[0].access.audit_file == "/log/100/audit"
    assert derive_brokers(named, 2)[1].log.file == "/log/101.log"


def test_listeners_that_are_too_near_are_refused_once_with_both_names() -> None:
    near = config_of(LISTENERS.replace("9192", "9093"))
    assert mistakes(near, 1) == []
    (told,) = mistakes(near, 5)
    assert told == (
        "[[listener]] INNER bind [[listener]] INNER bind of broker 101 and [[listener]] PUBLIC "
        "bind of broker 100 would both be 9093: with --cores 5 each takes the ports after it, so "
        "put them at least 100 apart"
    )


def test_the_machine_s_port_is_none_of_its_brokers() -> None:
    (told,) = mistakes(config_of("[metrics]\nport = 9093\n"), 2)
    assert "[listener] kafka_port of broker 101 and [metrics] port of the machine" in told


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("[metrics]\nport = 65534\n", "[metrics] port"),
        ("[listener]\nkafka_port = 65534\n", "[listener] kafka_port"),
        ("[listener]\nadvertised_port = 65534\n", "[listener] advertised"),
        (
            LISTENERS.replace("10.1.2.3:9192", "10.1.2.3:65534"),
            "[[listener]] PUBLIC advertised_for",
        ),
    ],
)
def test_ports_beyond_the_last_one_are_refused(more: str, key: str) -> None:
    config = config_of(more)
    assert mistakes(config, 1) == []
    (told,) = mistakes(config, 3)
    assert told.startswith(f"{key} --cores 3 needs the ports 6553")


def test_a_seed_that_names_one_of_the_brokers_must_have_its_address() -> None:
    text = FILE.replace("200@node-2:33145", "101@node-1:33146")
    right = load_broker_config(text, file="f", environment={})
    assert mistakes(right, 2) == []
    wrong = load_broker_config(text.replace("33146", "33199"), file="f", environment={})
    (told,) = mistakes(wrong, 2)
    assert told.startswith("[cluster] seeds broker 101: names this broker as 101@node-1:33199")


@pytest.mark.parametrize(("number", "region"), [(1, "east"), (2, "west"), (3, "south")])
def test_the_file_of_the_page_runs_on_three_machines_with_another_id_name_and_region(
    number: int, region: str
) -> None:
    lines = []
    for line in PAGE.read_text().split("```toml\n")[1].partition("```")[0].splitlines():
        if line.startswith("id = 100"):
            line = f"id = {100 * number}"
        line = line.replace('"east"', f'"{region}"')
        if not line.startswith("seeds"):
            line = line.replace("node-1", f"node-{number}")
        lines.append(line)
    config = load_broker_config("\n".join(lines), file=f"node-{number}.toml")
    assert mistakes(config, 2) == []
    for broker in derive_brokers(config, 2):
        assert broker.rpc_advertised.host == f"node-{number}"
        assert broker.listener.advertised_host == f"node-{number}"
    seeds = {one.id: one.address.host for one in config.seeds}
    assert seeds == {100: "node-1", 200: "node-2", 300: "node-3"}
