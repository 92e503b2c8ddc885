"""Findings of a broker's file: what its ports, its keys and its files leave open.

How:    a function for each subject; `file_findings` asks all of them. A port that only programs of
        this machine reach is weak where another one would be open.
Owns:   nothing.
Source: docs/operating/security.md, "What is open"."""

from collections.abc import Iterator
from shlex import quote

from strandline.config.addresses import format_address, is_loopback
from strandline.config.broker import BrokerConfig
from strandline.config.listener_section import (
    NO_CERTIFICATES,
    OAUTHBEARER,
    PLAIN,
    REQUIRED,
    Listener,
)
from strandline.config.other_ports import READ, REQUIRE
from strandline.config.webhook_hosts import near_hosts
from strandline.model.access import ScramSecret
from strandline.security.doctor.file_facts import FileFacts, key_files
from strandline.security.doctor.finding import Finding, Level
from strandline.security.sasl.iterations import ITERATIONS_DEFAULT

DAY_MS = 24 * 3600 * 1000
SOON_MS = 30 * DAY_MS
"""A certificate that ends within this time is a finding; the broker's log tells of it, too."""
_OTHERS, _OTHERS_WRITE, _GROUP, _GROUP_WRITE = 0o007, 0o002, 0o070, 0o020
_TO_SASL_SSL = 'write protocol = "SASL_SSL" and its certificates'


def file_findings(
    config: BrokerConfig, facts: FileFacts, *, file: str, now_ms: int
) -> list[Finding]:
    """All findings of a broker's file; `file`: its path."""
    found = [
        *key_findings(config),
        *_logins(config, facts),
        *_certificates(config, facts, now_ms),
        *_modes(config, facts, file),
    ]
    return [*found, *_webhooks(config), *_insecure(config, found)]


def key_findings(config: BrokerConfig) -> list[Finding]:
    """Those that need no look at the disk."""
    return [
        *(one for listener in config.listeners for one in _listener(config, listener)),
        *_peers(config),
        *_monitoring(config),
        *_access(config),
    ]


def weak_users(users: tuple[ScramSecret, ...]) -> Iterator[tuple[str, str, int]]:
    """(user, mechanism, iterations) of those with few iterations."""
    for one in users:
        if one.iterations < ITERATIONS_DEFAULT:
            yield one.user, one.mechanism, one.iterations


def _listener(config: BrokerConfig, listener: Listener) -> Iterator[Finding]:
    is_near = is_loopback(listener.bind.host)
    bad = Level.WEAK if is_near else Level.OPEN
    reached = "programs of this machine" if is_near else "other machines"
    address, entry = format_address(listener.bind), listener.entry
    key = f"{listener.place} protocol"
    if not listener.is_tls and not listener.has_logins:
        yield Finding(
            bad,
            listener.port_key,
            f"{reached} reach {address} without a login",
            f"make it a [[listener]], and {_TO_SASL_SSL}" if entry is None else _TO_SASL_SSL,
        )
    elif not listener.is_tls and not is_near:
        yield Finding(
            Level.OPEN, key, f"records cross the network at {address} in the clear", _TO_SASL_SSL
        )
    if entry is None:
        return
    for mechanism in (PLAIN, OAUTHBEARER):
        if listener.has_logins and not listener.is_tls and mechanism in entry.sasl_mechanisms:
            what = "passwords" if mechanism == PLAIN else "tokens"
            yield Finding(
                bad,
                f"{listener.place} sasl_mechanisms",
                f"{mechanism} sends {what} in the clear",
                _TO_SASL_SSL,
            )
    if listener.is_tls and not listener.has_logins and entry.client_certificates != REQUIRED:
        yield Finding(
            Level.WEAK if config.access.enforce_rules else bad,
            f"{listener.place} client_certificates",
            f"{reached} reach {address} as User:ANONYMOUS",
            f'write client_certificates = "{REQUIRED}" and trust',
        )
    if listener.is_tls and entry.tls_version_min == "1.2":
        yield Finding(
            Level.NOTE,
            f"{listener.place} tls_version_min",
            "clients may use TLS 1.2",
            'write "1.3" if all of them know it',
        )
    if listener.has_logins and not entry.sasl_session_ms:
        yield Finding(
            Level.NOTE,
            f"{listener.place} sasl_session_ms",
            "a login lasts as long as its connection, also of a user who is removed",
            "write 3600000 for an hour",
        )


def _peers(config: BrokerConfig) -> Iterator[Finding]:
    rpc = config.rpc
    if rpc.tls == REQUIRE:
        return
    is_near = is_loopback(rpc.host)
    what = "programs of this machine" if is_near else "other machines"
    yield Finding(
        Level.WEAK if is_near else Level.OPEN,
        "[rpc] tls",
        f'tls = "{rpc.tls}": {what} may speak as a broker at {format_address(config.rpc_bind)}',
        f'write tls = "{REQUIRE}" and its certificates',
    )


def _monitoring(config: BrokerConfig) -> Iterator[Finding]:
    metrics = config.metrics
    if not metrics.port:
        return
    is_near = is_loopback(metrics.host)
    place = f"{metrics.host}:{metrics.port}"
    if metrics.client_certificates != REQUIRED and metrics.anonymous_right == READ:
        reached = "programs of this machine" if is_near else "other machines"
        yield Finding(
            Level.NOTE if is_near else Level.OPEN,
            "[metrics] anonymous",
            f"{reached} read names of topics and counts at {place}",
            'give tokens (tokens_file), and write anonymous = "health"',
        )
    if metrics.takes_tokens and not metrics.certificate:
        yield Finding(
            Level.WEAK if is_near else Level.OPEN,
            "[metrics] certificate",
            f"tokens come to {place} in the clear",
            "write certificate and private_key",
        )


def _access(config: BrokerConfig) -> Iterator[Finding]:
    access = config.access
    is_near = all(is_loopback(one.bind.host) for one in config.listeners)
    if not access.enforce_rules:
        more = "" if access.super_users else ", and super_users"
        yield Finding(
            Level.WEAK if is_near else Level.OPEN,
            "[access] enforce_rules",
            "every client that may connect may do everything",
            f"write enforce_rules = true{more}",
        )
        if config.drills.enable:
            yield Finding(
                Level.WEAK if is_near else Level.OPEN,
                "[drills] enable",
                "every client that may connect may cut this broker off",
                "take it out, or write enforce_rules = true under [access]",
            )
    elif access.allow_without_rules:
        yield Finding(
            Level.OPEN,
            "[access] allow_without_rules",
            "every client may use what no rule is about",
            "add the rules that are missing, and take it out",
        )
    if not access.audit_file:
        yield Finding(
            Level.WEAK,
            "[access] audit_file",
            "nothing tells who did what",
            "write the path of a file",
        )


def _logins(config: BrokerConfig, facts: FileFacts) -> Iterator[Finding]:
    access = config.access
    if access.users_file in facts.unread:
        yield Finding(
            Level.WEAK,
            "[access] users_file",
            f"{access.users_file}: {facts.unread[access.users_file]}",
            "run this command as the broker's user, or mend the file",
        )
    for user, mechanism, iterations in weak_users(facts.users):
        yield Finding(
            Level.WEAK,
            "[access] users_file",
            f"{mechanism} of user {user} has {iterations} iterations",
            f"strandline user create {quote(user)} --file {quote(access.users_file)}",
        )
    known = {f"User:{one.user}" for one in facts.users}
    entries = [one.entry for one in config.listeners if one.entry is not None]
    has_others = any(
        one.client_certificates != NO_CERTIFICATES or OAUTHBEARER in one.sasl_mechanisms
        for one in entries
    )
    for principal in access.super_users if access.enforce_rules else ():
        if principal not in known and not has_others and access.users_file not in facts.unread:
            yield Finding(
                Level.NOTE,
                "[access] super_users",
                f"{principal} has no password in a users file",
                "give it one, or see that the cluster has: `strandline user list`",
            )


def _certificates(config: BrokerConfig, facts: FileFacts, now_ms: int) -> Iterator[Finding]:
    for path, certificates in facts.certificates.items():
        for one in certificates:
            days = (one.ends_at_ms - now_ms) // DAY_MS
            if one.ends_at_ms <= now_ms:
                yield Finding(Level.WEAK, path, f"{one.subject} has ended", "renew it")
            elif one.ends_at_ms - now_ms < SOON_MS:
                yield Finding(Level.WEAK, path, f"{one.subject} ends in {days} days", "renew it")
            if one.weakness:
                yield Finding(
                    Level.WEAK,
                    path,
                    f"{one.subject} {one.weakness}",
                    "issue one with a key of ECDSA P-256, signed with SHA-256",
                )
    for path, reason in facts.unread.items():
        if path != config.access.users_file:
            yield Finding(Level.WEAK, path, reason, "run this command as the broker's user")


def _modes(config: BrokerConfig, facts: FileFacts, file: str) -> Iterator[Finding]:
    """Files that others than the broker's user may use."""
    what_of = {
        config.broker.data_directory: "[broker] data_directory",
        config.access.users_file: "[access] users_file",
        config.access.audit_file: "[access] audit_file",
        config.tiered.credentials_file: "[tiered] credentials_file",
        config.metrics.tokens_file: "[metrics] tokens_file",
        **dict.fromkeys(key_files(config), "private_key"),
    }
    for path, mode in facts.modes.items():
        if path == file:
            if mode & (_OTHERS_WRITE | _GROUP_WRITE):
                yield Finding(
                    Level.OPEN, path, "other users may change this file", f"chmod go-w {path}"
                )
            continue
        is_directory = path == config.broker.data_directory
        advice = f"chmod {700 if is_directory else 600} {path}"
        if mode & _OTHERS:
            yield Finding(Level.OPEN, what_of[path], f"every user may use {path}", advice)
        elif mode & _GROUP:
            yield Finding(Level.WEAK, what_of[path], f"its group may use {path}", advice)


def _webhooks(config: BrokerConfig) -> Iterator[Finding]:
    for one in near_hosts(config.security.webhook_hosts):
        yield Finding(
            Level.WEAK,
            "[security] webhook_hosts",
            f"alarms may be posted to {one}: this machine, its link or a metadata service",
            "list the address of another machine",
        )


def _insecure(config: BrokerConfig, found: list[Finding]) -> Iterator[Finding]:
    if not config.security.insecure:
        return
    is_used = any(one.level is Level.OPEN for one in found)
    yield Finding(
        Level.OPEN if is_used else Level.WEAK,
        "[security] insecure",
        "the broker starts although ports are open"
        if is_used
        else "the broker would start with open ports, too",
        "close the ports, and take it out" if is_used else "take it out: no port needs it",
    )
