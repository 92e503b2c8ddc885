"""The members of a group, and the protocols that they vote for.

Why:    which member leads, which have joined and which protocol all of them speak are questions
        about the set of members alone.
Owns:   the members; the ids given out and not yet used; which static instance is which member.
Source: Kafka's classic group protocol; KIP-345 (static members), KIP-394 (member ids first)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from strandline.coordinator.log_records import TopicPartition


@dataclass(slots=True, kw_only=True)
class Member:
    """One member. `protocols`: {name: metadata}, the preferred first."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: dict[str, bytes]
    assignment: bytes = b""
    join_token: int | None = None
    """The JoinGroup request that waits for the end of the join phase."""
    sync_token: int | None = None
    """The SyncGroup request that waits for the leader's assignment."""
    is_new: bool = False
    """No generation has had this member yet."""
    latest_commits: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """{partition: (number of the connection, offset) of its latest commit} in this generation:
    those of earlier ones are refused for that."""

    def is_overtaken(self, partition: TopicPartition, connection: int, offset: int) -> bool:
        """Whether a commit comes from before one that is known: over an older connection, and it
        would set the offset back."""
        latest_connection, latest_offset = self.latest_commits.get(partition, (0, 0))
        return 0 < connection < latest_connection and offset < latest_offset

    @property
    def is_static(self) -> bool:
        """Whether it keeps its place across restarts."""
        return self.instance_id is not None

    @property
    def is_excused(self) -> bool:
        """Whether its session may not expire, because it waits for an answer. A new member's own
        timer bounds its wait."""
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)


class Roster:
    """All members, in the order in which they came."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.leader: str | None = None
        """The member that assigns; one of `members`, None only when there are none."""
        self.pending: set[str] = set()
        """Ids given to clients that have not joined with them yet."""
        self._static: dict[str, str] = {}
        """{instance id: member id}"""

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Member]:
        """Iterates over a copy, so that members may come and go meanwhile."""
        return iter(list(self.members.values()))

    def get(self, member_id: str) -> Member | None:
        """The member, or None."""
        return self.members.get(member_id)

    def static_member_id(self, instance_id: str) -> str | None:
        """The member that this instance is, or None."""
        return self._static.get(instance_id)

    def add(self, member: Member) -> None:
        """Add a member; the first one leads."""
        assert member.id not in self.members
        self.members[member.id] = member
        self.pending.discard(member.id)
        if member.instance_id is not None:
            self._static[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id

    def remove(self, member_id: str) -> Member | None:
        """Remove a member or a pending id; if it led, another member leads."""
        self.pending.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            self._static.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace_static(self, old: Member, new_id: str) -> Member:
        """The same instance has come back under a new member id: it takes over the place."""
        assert old.instance_id is not None and self.members.pop(old.id) is old
        renamed = Member(
            id=new_id,
            instance_id=old.instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            session_timeout_ms=old.session_timeout_ms,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self.members[new_id] = renamed
        self._static[old.instance_id] = new_id
        if self.leader == old.id:
            self.leader = new_id
        return renamed

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of a member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def joined_count(self) -> int:
        """Members that wait for the end of the join phase."""
        return sum(member.join_token is not None for member in self.members.values())

    @property
    def has_all_joined(self) -> bool:
        """Whether every member waits in the join phase, and every id given out was used."""
        return not self.pending and self.joined_count == len(self.members)

    def elect_joined_leader(self) -> bool:
        """Make a joined member the leader; False if no member has joined."""
        current = self.members.get(self.leader or "")
        if current is not None and current.join_token is not None:
            return True
        for member in self.members.values():
            if member.join_token is not None:
                self.leader = member.id
                return True
        return False

    def supports_any(self, names: Iterable[str]) -> bool:
        """Whether all members share one of these protocols."""
        return any(
            all(name in member.protocols for member in self.members.values()) for name in names
        )

    def select_protocol(self) -> str:
        """The protocol with the most votes among those that all members share."""
        members = list(self.members.values())
        shared = [n for n in members[0].protocols if all(n in m.protocols for m in members)]
        assert shared, "members that share no protocol are not taken in"
        votes = Counter(next(n for n in member.protocols if n in shared) for member in members)
        return votes.most_common(1)[0][0]
