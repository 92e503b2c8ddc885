"""`strandline doctor security --config`: each thing that a broker's file leaves open is named once.

Source: docs/operating/security.md, "What is open"."""

import subprocess
from pathlib import Path

import pytest

from strandline.config.load import load_broker_config
from strandline.model.access import ScramSecret
from strandline.security.authority import Authority
from strandline.security.doctor.broker_file import DAY_MS, file_findings
from strandline.security.doctor.file_facts import (
    CertificateFacts,
    FileFacts,
    read_certificates,
    read_facts,
)
from strandline.security.doctor.finding import Finding

NOW_MS = 1_000 * DAY_MS
BEGIN = '[broker]\nid = 1\ndata_directory = "/data"\n[cluster]\nid = "c"\nseeds = ["1@h:33145"]\n'
PEERS = (
    '[rpc]\nhost = "h"\ntls = "require"\ncertificate = "p.pem"\nprivate_key = "p.key"\n'
    'trust = "ca.pem"\n'
)
LOGIN = (
    '[[listener]]\nname = "L"\nbind = "h:9093"\nprotocol = "SASL_SSL"\ncertificate = "b.pem"\n'
    'private_key = "b.key"\ntls_version_min = "1.3"\nsasl_session_ms = 3600000\n'
)
ACCESS = (
    '[access]\nenforce_rules = true\nsuper_users = ["User:admin"]\nusers_file = "u"\n'
    'audit_file = "a"\n'
)
CLOSED = BEGIN + PEERS + LOGIN + ACCESS
INSECURE = "[security]\ninsecure = true\n"
ADMIN = ScramSecret("admin", "SCRAM-SHA-512", 8_192, b"salt", b"stored", b"server")
PRIVATE = FileFacts(
    modes={"f": 0o640, "/data": 0o700, "u": 0o600, "a": 0o600, "b.key": 0o600, "p.key": 0o600},
    users=(ADMIN,),
)


def findings(text: str, facts: FileFacts = PRIVATE) -> list[Finding]:
    """Those of a file named `f`."""
    config = load_broker_config(text, file="f")
    return file_findings(config, facts, file="f", now_ms=NOW_MS)


def named(found: list[Finding]) -> list[tuple[str, str]]:
    return [(one.level.value, one.key) for one in found]


def test_a_closed_file_has_no_finding() -> None:
    assert findings(CLOSED) == []


PLAIN = '[[listener]]\nname = "P"\nbind = "{}"\nprotocol = "SASL_PLAINTEXT"\nsasl_session_ms = 1\n'
SSL = (
    '[[listener]]\nname = "T"\nbind = "{}"\nprotocol = "SSL"\ncertificate = "b.pem"\n'
    'private_key = "b.key"\ntrust = "ca.pem"\ntls_version_min = "1.3"\nclient_certificates = "{}"\n'
)
CASES = {
    "an open listener": (
        BEGIN + '[listener]\nkafka_host = "h"\n' + PEERS + ACCESS + INSECURE,
        [("open", "[listener] kafka_port"), ("open", "[security] insecure")],
    ),
    "a listener of this machine": (
        BEGIN + PEERS + ACCESS,
        [("weak", "[listener] kafka_port")],
    ),
    "logins in the clear": (
        CLOSED + PLAIN.format("h:9094"),
        [("open", "[[listener]] P protocol")],
    ),
    "passwords in the clear": (
        CLOSED + PLAIN.format("h:9094") + 'sasl_mechanisms = ["PLAIN"]\n' + INSECURE,
        [
            ("open", "[[listener]] P protocol"),
            ("open", "[[listener]] P sasl_mechanisms"),
            ("open", "[security] insecure"),
        ],
    ),
    "passwords in the clear on this machine": (
        CLOSED + PLAIN.format("127.0.0.1:9094") + 'sasl_mechanisms = ["PLAIN"]\n',
        [("weak", "[[listener]] P sasl_mechanisms")],
    ),
    "certificates that may be left out": (
        CLOSED + SSL.format("h:9094", "requested") + INSECURE,
        [
            ("weak", "[[listener]] T client_certificates"),
            ("weak", "[security] insecure"),
        ],
    ),
    "webhooks of this machine": (
        CLOSED + '[security]\nwebhook_hosts = ["alarms.example", "127.0.0.1:80", "localhost"]\n',
        [("weak", "[security] webhook_hosts"), ("weak", "[security] webhook_hosts")],
    ),
    "insecure for nothing": (CLOSED + INSECURE, [("weak", "[security] insecure")]),
    "rules not enforced": (
        CLOSED.replace("enforce_rules = true", "enforce_rules = false"),
        [("open", "[access] enforce_rules")],
    ),
    "drills without rules": (
        CLOSED.replace("enforce_rules = true", "enforce_rules = false")
        + "[drills]\nenable = true\n",
        [("open", "[access] enforce_rules"), ("open", "[drills] enable")],
    ),
    "resources without rules": (
        CLOSED + "allow_without_rules = true\n",
        [("open", "[access] allow_without_rules")],
    ),
    "no audit log": (CLOSED.replace('audit_file = "a"\n', ""), [("weak", "[access] audit_file")]),
    "a super user without a login": (
        CLOSED.replace('"User:admin"', '"User:admin", "User:eve"'),
        [("note", "[access] super_users")],
    ),
    "brokers that prefer TLS": (
        CLOSED.replace('"require"', '"prefer"') + INSECURE,
        [("open", "[rpc] tls"), ("open", "[security] insecure")],
    ),
    "brokers without TLS on this machine": (
        BEGIN.replace("@h", "@127.0.0.1") + LOGIN + ACCESS,
        [("weak", "[rpc] tls")],
    ),
    "an old TLS": (
        CLOSED.replace('tls_version_min = "1.3"\n', ""),
        [("note", "[[listener]] L tls_version_min")],
    ),
    "logins without an end": (
        CLOSED.replace("sasl_session_ms = 3600000\n", ""),
        [("note", "[[listener]] L sasl_session_ms")],
    ),
    "an open console": (
        CLOSED + '[metrics]\nhost = "h"\nport = 9404\n' + INSECURE,
        [("open", "[metrics] anonymous"), ("open", "[security] insecure")],
    ),
    "tokens in the clear": (
        CLOSED + '[metrics]\nhost = "h"\nport = 9404\ntokens_file = "t"\n' + INSECURE,
        [("open", "[metrics] certificate"), ("open", "[security] insecure")],
    ),
    "a console of this machine": (
        CLOSED + "[metrics]\nport = 9404\n",
        [("note", "[metrics] anonymous")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_file_leaves_open_is_named(case: str) -> None:
    text, expected = CASES[case]
    assert named(findings(text)) == expected


FACTS = {
    "a data directory for everyone": ({"/data": 0o755}, "open", "[broker] data_directory"),
    "a data directory for a group": ({"/data": 0o750}, "weak", "[broker] data_directory"),
    "a key for everyone": ({"b.key": 0o644}, "open", "private_key"),
    "a key for a group": ({"p.key": 0o640}, "weak", "private_key"),
    "an audit log for everyone": ({"a": 0o644}, "open", "[access] audit_file"),
    "a users file for everyone": ({"u": 0o644}, "open", "[access] users_file"),
    "a file that others change": ({"f": 0o666}, "open", "f"),
}


@pytest.mark.parametrize("case", FACTS)
def test_files_that_others_may_use_are_named(case: str) -> None:
    modes, level, key = FACTS[case]
    facts = FileFacts(modes={**PRIVATE.modes, **modes}, users=PRIVATE.users)
    (found,) = findings(CLOSED, facts)
    assert named([found]) == [(level, key)]
    assert found.advice.startswith("chmod ")


def test_certificates_that_end_or_are_weak_are_named() -> None:
    facts = FileFacts(
        modes=PRIVATE.modes,
        users=PRIVATE.users,
        certificates={
            "b.pem": (CertificateFacts("CN=b", NOW_MS + 10 * DAY_MS),),
            "p.pem": (CertificateFacts("CN=p", NOW_MS - 1),),
            "ca.pem": (CertificateFacts("CN=ca", NOW_MS + 99 * DAY_MS, "has a key of 1024 bits"),),
        },
    )
    assert [(one.key, one.what) for one in findings(CLOSED, facts)] == [
        ("b.pem", "CN=b ends in 10 days"),
        ("p.pem", "CN=p has ended"),
        ("ca.pem", "CN=ca has a key of 1024 bits"),
    ]


def test_users_with_few_iterations_are_named() -> None:
    few = ScramSecret("mia", "SCRAM-SHA-256", 4_096, b"salt", b"stored", b"server")
    (found,) = findings(CLOSED, FileFacts(modes=PRIVATE.modes, users=(ADMIN, few)))
    assert found.what == "SCRAM-SHA-256 of user mia has 4096 iterations"
    few = ScramSecret("a;reboot", "SCRAM-SHA-256", 4_096, b"salt", b"stored", b"server")
    (found,) = findings(CLOSED, FileFacts(modes=PRIVATE.modes, users=(ADMIN, few)))
    assert found.advice.startswith("strandline user create 'a;reboot' --file ")


def test_weak_certificates_are_told_from_strong_ones(tmp_path: Path) -> None:
    strong = Authority(tmp_path / "ca").issue("strong").certificate
    assert [one.weakness for one in read_certificates(strong)] == [""]
    issue = [
        "openssl",
        "req",
        "-x509",
        "-nodes",
        "-days",
        "9",
        "-subj",
        "/CN=w",
        "-keyout",
        "k.pem",
    ]
    small = [*issue, "-newkey", "rsa:1024", "-keyout", "k.pem", "-out", "small.pem"]
    subprocess.run(small, cwd=tmp_path, check=True, capture_output=True)
    old = [*issue, "-newkey", "rsa:2048", "-sha1", "-CA", "small.pem", "-CAkey", "k.pem"]
    subprocess.run(
        [*old, "-subj", "/CN=x", "-keyout", "o.key", "-out", "old.pem"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    told = [
        one.weakness
        for name in ("small", "old")
        for one in read_certificates(tmp_path / f"{name}.pem")
    ]
    assert told == ["has a key of 1024 bits", "is signed with SHA1"]


def test_the_facts_of_a_file_come_from_the_disk(tmp_path: Path) -> None:
    files = Authority(tmp_path / "ca").issue("b")
    (tmp_path / "data").mkdir(mode=0o700)
    text = CLOSED.replace("/data", str(tmp_path / "data"))
    text = text.replace("b.pem", str(files.certificate)).replace("b.key", str(files.key))
    config = load_broker_config(text, file="f")
    facts = read_facts(config, tmp_path / "f")
    assert facts.modes == {str(files.key): 0o600, str(tmp_path / "data"): 0o700}
    (found,) = facts.certificates[str(files.certificate)]
    assert (found.subject, found.weakness) == ("CN=b", "")
    assert facts.unread["p.pem"] == "No such file or directory"
    assert "u" in facts.unread
