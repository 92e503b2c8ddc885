"""Rules, secrets of passwords, and quotas, as the controller's log has them.

Why:    requests, answers, the controller's log, snapshots and the command line name the same
        things. The numbers are Kafka's.
Owns:   nothing by itself. `controller.state` changes it, one record at a time; `security` judges.
Source: Kafka 4.3's AclOperation, AclPermissionType, ResourceType, PatternType; decision 0069."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple
from weakref import WeakKeyDictionary, ref

import msgspec

from strandline.model.networks import canonical_host


class Operation(IntEnum):
    """What a rule allows or denies."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether a rule allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Kind(IntEnum):
    """The kind of a resource."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a rule's name is compared with a resource's."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    """In filters only: every pattern that covers the resource."""
    LITERAL = 3
    PREFIXED = 4


CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of kind CLUSTER."""
WILDCARD = "*"
"""As a literal name: all of a kind. As a host: every host."""
WILDCARD_PRINCIPAL = "User:*"
GROUP_PREFIX = "Group:"
"""A principal of `Group:NAME` is every user whose token names the group."""
REGION_HOST = "region:"
"""A host of `region:NAME` is every host, by way of the brokers of that region."""


class Caller(NamedTuple):
    """A client, as rules name it. `principals`: the user, everyone, and the user's groups."""

    principals: frozenset[str]
    host: str


# Sets of names that a session has, each once.
_shared: WeakKeyDictionary[frozenset[str], ref[frozenset[str]]] = WeakKeyDictionary()


def shared(names: frozenset[str]) -> frozenset[str]:
    """The set that stands for all of equal members, as long as one is in use. A user may have a
    thousand groups and many connections; and authorisers look sets up for each request, which
    takes long for large ones that are not the same object."""
    known = _shared.get(names)
    present = None if known is None else known()
    if present is None:
        _shared[names] = ref(names)
        present = names
    return present


def caller_of(principal: str, host: str, groups: Iterable[str] = ()) -> Caller:
    """The caller of a principal as `User:NAME`, an address, and names of groups."""
    named = (principal, WILDCARD_PRINCIPAL, *(GROUP_PREFIX + one for one in groups))
    return Caller(shared(frozenset(named)), host)


class Rule(msgspec.Struct, frozen=True, order=True):
    """`principal` may, or may not, do `operation` from `host` with what the pattern covers."""

    kind: Kind
    pattern: PatternType
    name: str
    principal: str
    """`User:NAME`, `User:*` for everyone, or `Group:NAME`."""
    host: str
    """An address as the broker sees it, in any spelling; `*` for every one, or `region:NAME`: every
    address, but only by way of brokers of that region."""
    operation: Operation
    permission: Permission

    def concerns(self, caller: Caller, region: str) -> bool:
        """Whether the rule speaks of this caller, by a broker of `region`."""
        if self.principal not in caller.principals:
            return False
        if self.host.startswith(REGION_HOST):
            return self.host[len(REGION_HOST) :] == region
        if self.host in (caller.host, WILDCARD):
            return True
        return ":" in self.host and canonical_host(self.host) == canonical_host(caller.host)

    def covers(self, name: str) -> bool:
        """Whether the pattern covers a resource of the rule's kind by its name."""
        if self.pattern is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


class ScramSecret(msgspec.Struct, frozen=True):
    """The salted keys of a password (RFC 5802, section 3). They do not suffice to log in."""

    user: str
    mechanism: str
    """`SCRAM-SHA-256` or `SCRAM-SHA-512`."""
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramSecret({self.user!r}, {self.mechanism}, {self.iterations} iterations)"


QuotaEntity = tuple[tuple[str, str | None], ...]
"""((type, name), ...), sorted by type: `user`, `client-id` or `ip`; None is the default."""


@dataclass(slots=True)
class Access:
    """All rules, secrets and quotas. `version`: the cluster's version after the last change."""

    rules: dict[Rule, None] = field(default_factory=dict)
    secrets: dict[tuple[str, str], ScramSecret] = field(default_factory=dict)
    """{(user, mechanism): its secret}"""
    quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    """{entity: {key: value}}, none without a value"""
    version: int = 0
