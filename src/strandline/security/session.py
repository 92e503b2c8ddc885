"""The principal at the other end of a connection, and its session.

Why:    every handler, limit and line of an audit asks the same object, whatever authenticated it.
How:    A connection has one Session at a time. Authentication puts another one in its place, so a
        request keeps a consistent one as long as it needs it.
Owns:   nothing; both are values.
Source: docs/decisions/0069-access.md; Kafka's KafkaPrincipal and AuthenticationContext."""

from dataclasses import dataclass, field

from strandline.model.access import Caller, caller_of, shared
from strandline.model.cluster import ONLY_LISTENER

USER = "User"


@dataclass(frozen=True, slots=True)
class Principal:
    """A user, as rules and quotas name it. `kind` is `User`: Kafka has no other one."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @staticmethod
    def parse(text: str) -> "Principal":
        """The principal of `User:alice`; raises ValueError with the reason. Names may have
        colons."""
        kind, colon, name = text.partition(":")
        if not colon or not kind or not name:
            raise ValueError(f"must be User:NAME, not {text!r}")
        return Principal(kind, name)

    @staticmethod
    def user(name: str) -> "Principal":
        """The user of this name."""
        return Principal(USER, name)


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""The principal of a connection without authentication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The session of one connection.

    principal:        the user.
    groups:           the user's groups, as a token names them.
    listener:         the name of the listener that the client came to.
    host:             the client's address, without a port.
    mechanism:        of SASL; empty without SASL.
    is_encrypted:     whether TLS protects the connection.
    is_authenticated: whether the connection may send requests other than those of
                      authentication. True for ANONYMOUS on a listener without authentication.
    caller:           the principal, its groups and the host, as rules name them.
    ends_at_ms:       monotonic time at which the client must have authenticated again; None for
                      never (KIP-368)."""

    principal: Principal = ANONYMOUS
    groups: frozenset[str] = frozenset()
    listener: str = ONLY_LISTENER
    host: str = "127.0.0.1"
    mechanism: str = ""
    is_encrypted: bool = False
    is_authenticated: bool = True
    ends_at_ms: int | None = None
    caller: Caller = field(init=False)

    def is_over(self, now_ms: int) -> bool:
        """Whether the client should have authenticated again by this monotonic time."""
        return self.ends_at_ms is not None and now_ms >= self.ends_at_ms

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", shared(self.groups))
        caller = caller_of(str(self.principal), self.host, self.groups)
        object.__setattr__(self, "caller", caller)
