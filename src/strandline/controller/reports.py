"""The reports that brokers give the controller: room, logs, lagging replicas, and the brokers that
they hear. Pure.

Why:    some decisions depend on facts that no log has, because they change all the time: whether
        the replicas of a broker fit elsewhere, and whether the brokers that are up are in sync.
How:    the controller asks with the commands that need it, and the balancer asks now and then; a
        broker that does not answer in time has reported nothing.
Owns:   nothing.
Source: decisions 0010 and 0011."""

from collections.abc import Mapping

import msgspec

from strandline.model.ids import NO_BROKER, BrokerId, GroupId


class Question(msgspec.Struct, frozen=True, array_like=True):
    """The parts of a report besides the room on the disk: the sizes of logs; replicas in sync;
    brokers heard; partitions that refuse acks=all, or have no known leader; the ends of the logs of
    these groups."""

    sizes: bool = False
    leads: bool = False
    hears: bool = False
    refuses: bool = False
    logs: tuple[GroupId, ...] = ()


class LogReport(msgspec.Struct, frozen=True, array_like=True):
    """The replica of a group there, as `survivors.SurvivingLog` has it. `leader`: the leader
    that it knows; NO_BROKER for none."""

    is_led: bool
    epoch: int
    last_epoch: int
    last_index: int
    start: int
    committed: int
    end: int
    has_lost: bool
    leader: BrokerId = NO_BROKER


class Report(msgspec.Struct, frozen=True, array_like=True):
    """The report of one broker. `sizes`: {group: bytes of its log there}; `behind`: {group that it
    leads: its voters that are not in sync}; `hears`: the brokers that it hears, itself included;
    None if the controller did not ask, or the broker's version does not know the question;
    `refusing`: groups that it leads and that refuse acks=all, because too few replicas vote or make
    up the write quorum; `logs`: {group in the question that is open there: its log}; `leaderless`:
    groups whose replica there knows no living leader, or has failed; `lagging`: groups that it
    leads whose closed segments are missing from a bucket for too long; `full`: groups that it leads
    and that refuse writes, for too much waits for a bucket; `full_in_ms`: how long until its disk
    is full or a limit of such a group is reached, at the present rate; -1 if that does not come
    nearer."""

    used_bytes: int
    free_bytes: int
    sizes: dict[GroupId, int] = {}
    behind: dict[GroupId, tuple[BrokerId, ...]] = {}
    hears: tuple[BrokerId, ...] | None = None
    refusing: tuple[GroupId, ...] = ()
    logs: dict[GroupId, LogReport] = {}
    leaderless: tuple[GroupId, ...] = ()
    lagging: tuple[GroupId, ...] = ()
    full: tuple[GroupId, ...] = ()
    full_in_ms: int = -1
    buckets: dict[str, str] | None = None
    """{bucket in its file: why it is not used; empty if nothing is wrong}; None: not told."""
    election_timeout_ms: int = 0
    """Of its file; 0: not told."""

    @property
    def used_percent(self) -> int:
        """How full the disk is; rounded down."""
        return 100 * self.used_bytes // max(1, self.used_bytes + self.free_bytes)

    def room_bytes(self, percent: int) -> int:
        """How many more bytes fit until the disk is so full; negative if it is fuller."""
        return (self.used_bytes + self.free_bytes) * percent // 100 - self.used_bytes


Reports = Mapping[BrokerId, Report]
