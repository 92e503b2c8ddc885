"""The section of a broker's file about the authorisation of clients.

Owns:   nothing.
Source: decision 0069; Kafka's `authorizer.class.name`, `super.users` and
        `allow.everyone.if.no.acl.found`."""

from dataclasses import dataclass

from strandline.config.keys import Value, key

MIB = 1024 * 1024


def check_super_users(value: Value) -> str | None:
    """Why this list of principals is not legal; None if it is."""
    assert isinstance(value, tuple)
    for one in value:
        kind, colon, name = one.partition(":")
        if not (kind and colon and name):
            return f"must be a list of principals, each as User:NAME or Group:NAME, not {one!r}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSection:
    """[access]: what clients may do. The same on every broker."""

    enforce_rules: bool = key(
        False,
        "Whether rules (Kafka's ACLs) decide what clients may do. If false, every client may do "
        "everything, and the cluster takes no rules.",
    )
    super_users: tuple[str, ...] = key(
        (),
        "The principals that may do everything, each as User:NAME, or as Group:NAME for the users "
        "whose tokens name the group (Kafka's `super.users`). `enforce_rules` needs one at least: "
        "it adds the first rules.",
        check=check_super_users,
        example="User:admin",
    )
    users_file: str = key(
        "",
        "A file of users that may log in beside those of the cluster, which no other user of the "
        "machine may read; written by `strandline user create --file`. The cluster's password of "
        "the same user counts first. The broker reads it when it starts.",
        example="/etc/strandline/users.jsonl",
    )
    allow_without_rules: bool = key(
        False,
        "Whether a resource that no rule covers is open to every client (Kafka's "
        "`allow.everyone.if.no.acl.found`).",
    )
    audit_file: str = key(
        "",
        "The file of the audit log: one line of JSON for each login, each refusal and each change. "
        "Empty: no audit log. Only the broker's user may read it.",
        example="/var/log/strandline/audit.jsonl",
    )
    audit_bytes_max: int = key(
        64 * MIB,
        "The broker renames the audit log to the same name with .1 once it is this large, in place "
        "of the one before. Both take at most twice as much.",
        unit="bytes",
        minimum=8 * MIB,
        maximum=64 * 1024 * MIB,
    )
    audit_lines_per_s_max: int = key(
        200,
        "The most lines per second of the audit log for each kind of event: logins, refusals, "
        "changes. The broker drops others; a line tells how many.",
        minimum=1,
        maximum=100_000,
    )
