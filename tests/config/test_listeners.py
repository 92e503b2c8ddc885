"""Listeners in a broker's file, and which ports may be open (docs/decisions/0069-access.md)."""

import pytest

from strandline.config.broker import BrokerConfig
from strandline.config.kafka.from_file import FILE_VALUES
from strandline.config.load import load_broker_config, read_broker_config
from strandline.model.cluster import Address, Endpoint, NearAddress

LEAST = """
[broker]
id = 1
data_directory = "/d"
[cluster]
id = "c1"
seeds = ["1@127.0.0.1:33145"]
"""
TLS = 'protocol = "SSL"\ncertificate = "/c"\nprivate_key = "/k"\n'
MUTUAL = TLS + 'trust = "/t"\nclient_certificates = "required"\n'
HTTPS = "[metrics]\nhost = '10.0.0.1'\nport = 9404\ncertificate = '/c'\nprivate_key = '/k'\n"
OPEN = "\n[security]\ninsecure = true\n"


def entry(name: str = "A", bind: str = "127.0.0.1:9093", more: str = "") -> str:
    return f'[[listener]]\nname = "{name}"\nbind = "{bind}"\n{more}\n'


def load(text: str) -> BrokerConfig:
    return load_broker_config(LEAST + text, file="f", environment={})


def refusals(text: str, **environment: str) -> list[str]:
    config, mistakes = read_broker_config(LEAST + text, file="f", environment=environment)
    assert config is None
    return [str(one) for one in mistakes]


def test_the_section_of_one_listener_is_one_plaintext_listener() -> None:
    (listener,) = load("[listener]\nkafka_port = 9_000\nadvertised_host = 'b1'\n").listeners
    assert (listener.name, listener.protocol) == ("PLAINTEXT", "PLAINTEXT")
    assert listener.bind == Address("127.0.0.1", 9_000)
    assert listener.advertised == Address("b1", 9_000)


def test_several_listeners_have_names_and_addresses_of_their_own() -> None:
    config = load(
        entry("INTERNAL", "127.0.0.1:9093")
        + entry("PUBLIC", "[::1]:9094", MUTUAL)
        + 'advertised = "b1.example:443"\n'
    )
    assert [one.endpoint for one in config.listeners] == [
        Endpoint("INTERNAL", Address("127.0.0.1", 9093), "PLAINTEXT"),
        Endpoint("PUBLIC", Address("b1.example", 443), "SSL"),
    ]
    assert config.listeners[1].bind == Address("::1", 9094)
    assert FILE_VALUES["listeners"](config) == "INTERNAL://127.0.0.1:9093,PUBLIC://[::1]:9094"
    assert FILE_VALUES["listener.security.protocol.map"](config) == (
        "INTERNAL:PLAINTEXT,PUBLIC:SSL,CONTROLLER:PLAINTEXT"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            entry(more='protocol = "TLS"'),
            "[[listener]] A protocol: must be PLAINTEXT or SSL or SASL_PLAINTEXT or SASL_SSL, "
            "not 'TLS'",
        ),
        (entry("a b"), "[[listener]] a b name: must be at most 64 of A-Z a-z 0-9 . _ -, not 'a b'"),
        (
            '[[listener]]\nname = "A"\n',
            '[[listener]] A bind: is missing; give for example bind = "0.0.0.0:9093"',
        ),
        (
            '[[listener]]\nbind = "a:1"\n',
            '[[listener]] 1 name: is missing; give for example name = "INTERNAL"',
        ),
        (entry(bind="9093"), "[[listener]] A bind: must look like host:port, not '9093'"),
        (entry(more="port = 7"), "[[listener]] A port: unknown key"),
        (entry(more="trusts = 7"), "[[listener]] A trusts: unknown key (did you mean trust?)"),
        (
            entry() + entry(bind="127.0.0.1:1"),
            "[[listener]] A: stands twice: each listener has a name of its own",
        ),
        (
            entry() + entry("B"),
            "[[listener]] B bind: must differ from [[listener]] A bind, which is 9093 too",
        ),
        (
            entry(more='protocol = "SSL"\nprivate_key = "/k"'),
            '[[listener]] A certificate: must be given with protocol = "SSL": a PEM file',
        ),
        (
            entry(more='protocol = "SASL_SSL"\nprivate_key = "/k"'),
            '[[listener]] A certificate: must be given with protocol = "SASL_SSL": a PEM file',
        ),
        (
            entry(more=TLS + 'client_certificates = "required"'),
            '[[listener]] A trust: must be given with client_certificates = "required": a PEM file '
            "with the certificates of the authority that clients' certificates are of",
        ),
        (
            entry(more='certificate = "/c"'),
            "[[listener]] A certificate: means nothing with protocol = 'PLAINTEXT'",
        ),
        (
            entry(more=MUTUAL + 'principal_mapping_rules = "CN"'),
            "[[listener]] A principal_mapping_rules: must be DEFAULT, or RULE:pattern/replacement/ "
            "with L or U behind it, not 'CN'",
        ),
        (
            entry(more=TLS + 'more_certificates = ["/c"]'),
            "[[listener]] A more_certificates: must be certificate=key, two PEM files, not '/c'",
        ),
        (
            entry(bind="0.0.0.0:9093", more=MUTUAL),
            "[[listener]] A advertised: must be given when bind is 0.0.0.0:9093: no client can "
            "reach that",
        ),
        (
            '[rpc]\ntls = "require"\ncertificate = "/c"\nprivate_key = "/k"\n',
            '[rpc] trust: must be given with tls = "require": a PEM file',
        ),
        (
            '[rpc]\ncertificate = "/c"\n',
            '[rpc] certificate: means nothing with tls = "off"',
        ),
        (
            '[metrics]\ncertificate = "/c"\n',
            "[metrics] private_key: must be given too: TLS needs both files",
        ),
    ],
)
def test_a_wrong_listener_is_refused_in_one_line(text: str, reason: str) -> None:
    assert refusals(text) == [f"f: {reason}"]


def test_one_listener_and_several_are_not_given_together() -> None:
    assert refusals(entry(), STRANDLINE_LISTENER__KAFKA_PORT="9099") == [
        "f: [listener]: stands beside [[listener]], which takes its place: give one of the two"
    ]


def test_brokers_with_tls_need_the_name_of_their_cluster() -> None:
    text = LEAST.replace('id = "c1"\n', "") + (
        '[rpc]\ntls = "prefer"\ncertificate = "/c"\nprivate_key = "/k"\ntrust = "/t"\n'
    )
    _, mistakes = read_broker_config(text, file="f", environment={})
    assert [str(one) for one in mistakes] == [
        'f: [cluster] id: must be given with [rpc] tls = "prefer": the certificates of brokers '
        "name it"
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[listener]\nkafka_host = '10.0.0.1'\n", "[listener] kafka_host"),
        ("[listener]\nkafka_host = 'broker-1'\n", "[listener] kafka_host"),
        (entry(bind="[2001:db8::1]:9093"), "[[listener]] A bind"),
        (entry(bind="10.0.0.1:9093", more=TLS), "[[listener]] A bind"),
        (
            entry(bind="10.0.0.1:9093", more=MUTUAL.replace("required", "requested")),
            "[[listener]] A bind",
        ),
        ("[metrics]\nhost = '10.0.0.1'\nport = 9404\n", "[metrics] host"),
        (HTTPS + "client_certificates = 'requested'\ntrust = '/t'\n", "[metrics] host"),
        (HTTPS + "tokens_file = '/t'\nanonymous = 'read'\n", "[metrics] host"),
    ],
)
def test_a_port_that_is_open_to_other_machines_must_be_so_by_decision(
    text: str, place: str
) -> None:
    (refusal,) = refusals(text)
    assert refusal.startswith(f"f: {place}: ")
    assert "is open to other machines" in refusal
    assert refusal.endswith("or write `insecure = true` under [security] if every machine may")
    assert load(text + OPEN).security.insecure


def test_an_open_listener_is_told_each_way_to_authenticate_clients() -> None:
    (plain,) = refusals(entry(bind="10.0.0.1:9093"))
    assert 'a [[listener]] with protocol = "SASL_SSL", or with protocol = "SSL" and' in plain
    (encrypted,) = refusals(entry(bind="10.0.0.1:9093", more=TLS))
    assert 'write protocol = "SASL_SSL", or client_certificates = "required"' in encrypted


def test_a_port_for_brokers_that_is_open_must_be_so_by_decision() -> None:
    seeds = LEAST.replace("127.0.0.1:33145", "10.0.0.1:33145")
    text = seeds + "[rpc]\nhost = '10.0.0.1'\n"
    for tls in ("off", "prefer"):
        files = "certificate = '/c'\nprivate_key = '/k'\ntrust = '/t'\n" if tls != "off" else ""
        _, mistakes = read_broker_config(f"{text}tls = '{tls}'\n{files}", file="f", environment={})
        assert [one.place for one in mistakes] == ["[rpc] host"]
    load_broker_config(f"{text}tls = 'require'\n{files}", file="f", environment={})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[listener]\nkafka_host = 'localhost'\n",
        "[listener]\nkafka_host = '127.8.0.1'\n",
        entry(bind="[::1]:9093"),
        entry(bind="10.0.0.1:9093", more=MUTUAL),
        "[metrics]\nhost = '10.0.0.1'\nport = 0\n",
        "[metrics]\nhost = '10.0.0.1'\nport = 9404\ncertificate = '/c'\nprivate_key = '/k'\n"
        "trust = '/t'\nclient_certificates = 'required'\n",
        HTTPS + "tokens_file = '/t'\n",
        HTTPS + "tokens_file = '/t'\nanonymous = 'health'\n",
        HTTPS + "anonymous = 'health'\n",
        "[metrics]\nhost = '10.0.0.1'\nport = 9404\nanonymous = 'health'\n",
    ],
)
def test_a_port_whose_clients_prove_who_they_are_or_are_here_may_be_open(text: str) -> None:
    load(text)


def test_tokens_of_the_http_port_are_not_sent_in_the_clear() -> None:
    text = "[metrics]\nhost = '10.0.0.1'\nport = 9404\ntokens_file = '/t'\n"
    (refusal,) = refusals(text)
    assert refusal.startswith("f: [metrics] certificate: must be given too: without TLS, clients ")
    assert load(text + OPEN).metrics.anonymous_right == "none"
    assert load(text.replace("10.0.0.1", "127.0.0.1")).metrics.takes_tokens


def test_an_http_port_that_no_client_can_use_is_a_mistake() -> None:
    (refusal,) = refusals("[metrics]\nport = 9404\nanonymous = 'none'\n")
    assert "[metrics] anonymous: must not be none if no client can prove who it is" in refusal
    (refusal, *_) = refusals("[metrics]\nport = 9404\noauthbearer = true\n")
    assert refusal.endswith("jwks_endpoint_url: must be given: [metrics] oauthbearer is true")


TOKENS = 'protocol = "SASL_PLAINTEXT"\nsasl_mechanisms = ["OAUTHBEARER"]\n'
PROVIDER = (
    '[oauthbearer]\njwks_endpoint_url = "https://id/keys"\nexpected_issuer = "i"\n'
    'expected_audience = ["a"]\n'
)


def test_logins_by_tokens_need_keys_an_issuer_and_an_audience() -> None:
    config = load(entry(more=TOKENS) + PROVIDER)
    assert config.oauthbearer.expected_audience == ("a",)
    asked = {name: read(config) for name, read in FILE_VALUES.items() if "oauthbearer" in name}
    assert asked == {
        "sasl.oauthbearer.clock.skew.seconds": "30",
        "sasl.oauthbearer.expected.audience": "a",
        "sasl.oauthbearer.expected.issuer": "i",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": "3600000",
        "sasl.oauthbearer.jwks.endpoint.url": "https://id/keys",
        "sasl.oauthbearer.sub.claim.name": "sub",
    }
    assert load(entry(more='protocol = "SASL_PLAINTEXT"')).oauthbearer.expected_issuer == ""
    found = refusals(entry(more=TOKENS) + "[oauthbearer]\nalgorithms = []\nsub_claim_name = ''\n")
    names = ("jwks_endpoint_url", "expected_issuer", "expected_audience")
    for name in (*names, "algorithms", "sub_claim_name"):
        reason = f"[oauthbearer] {name}: must be given: [[listener]] A has OAUTHBEARER"
        assert any(reason in one for one in found), found


def test_super_users_that_are_groups_need_tokens() -> None:
    access = "[access]\nenforce_rules = true\nsuper_users = ['Group:operators']\n"
    (refusal,) = refusals(entry() + access)
    assert "[access] super_users: names groups only, which tokens name" in refusal
    load(entry() + access.replace("['Group", "['User:admin', 'Group"))
    load(entry(more=TOKENS) + PROVIDER + access)


@pytest.mark.parametrize(
    "url",
    [
        "http://id.example/keys",
        "https://user:word@id.example/keys",
        "https:///keys",
        "https://id.example:x/keys",
        "https://id.example/a b",
        "https://id.example/#a",
        "ftp://id.example/keys",
        "file://host/keys",
        "file:keys",
        "/keys",
        "http://127.0.0.1.id.example/keys",
        "http://[::1/keys",
    ],
)
def test_keys_come_over_tls_or_from_a_file(url: str) -> None:
    section = PROVIDER.replace("https://id/keys", url)
    (found,) = refusals(entry(more=TOKENS) + section)
    assert "[oauthbearer] jwks_endpoint_url: must be" in found


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/k", "http://[::1]/k", "file:///etc/k"])
def test_keys_of_this_machine_need_no_tls(url: str) -> None:
    load(entry(more=TOKENS) + PROVIDER.replace("https://id/keys", url))


@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
def test_other_machines_send_no_secrets_in_the_clear(mechanism: str) -> None:
    logins = f'protocol = "SASL_PLAINTEXT"\nsasl_mechanisms = ["SCRAM-SHA-256", "{mechanism}"]\n'
    (found,) = refusals(entry(bind="192.0.2.1:9093", more=logins) + PROVIDER)
    assert f"sasl_mechanisms: {mechanism} sends secrets in the clear" in found
    load(entry(bind="192.0.2.1:9093", more=logins) + PROVIDER + OPEN)
    load(entry(bind="127.0.0.1:9093", more=logins) + PROVIDER)


def test_a_listener_has_addresses_for_clients_of_networks() -> None:
    text = entry(
        more="advertised_for = ['10.0.0.0/8=10.1.2.3:9093', '2001:db8::/32=[2001:db8::3]:1']"
    )
    (listener,) = load(text).listeners
    near = (
        NearAddress("10.0.0.0/8", Address("10.1.2.3", 9_093)),
        NearAddress("2001:db8::/32", Address("2001:db8::3", 1)),
    )
    assert listener.endpoint == Endpoint("A", Address("127.0.0.1", 9_093), "PLAINTEXT", near)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("10.0.0.1/8=b:1", "gives 10.0.0.1/8, an address within a network: write 10.0.0.0/8"),
        ("east=b:1", "must give a network as 10.1.0.0/16 or 2001:db8::/32, not 'east'"),
        ("10.0.0.0/8", "must look like 10.0.0.0/8=host:port, not '10.0.0.0/8'"),
        ("10.0.0.0/8=b", "must look like host:port, not 'b'"),
        ("10.0.0.0/8=0.0.0.0:1", "gives 0.0.0.0:1, which no client can reach"),
        ("10.0.0.0/8=b:1', '10.0.0.0/8=c:1", "gives the network 10.0.0.0/8 twice"),
    ],
)
def test_an_address_for_no_network_is_refused(given: str, reason: str) -> None:
    (line,) = refusals(entry(more=f"advertised_for = ['{given}']"))
    assert line == f"f: [[listener]] A advertised_for: {reason}"
