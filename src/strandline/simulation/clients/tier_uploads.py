"""An uploader without objects: it proposes what uploads would, in any order and more than once.

Why:    the state of a partition's tier must hold through every fault, whatever a leader proposes;
        where the bytes go is the subject of other runs.
How:    each turn asks the leader of a group to propose a command that its state allows, or one that
        it has proposed before. Records count as uploaded once they are live.
Owns:   the commands that it has proposed.
Source: decision 0057; design section 10."""

import random
from functools import partial

from strandline.model.ids import NO_BROKER, Epoch, GroupId, Offset
from strandline.protocol.errors import Error
from strandline.replication.replica.replica import Replica
from strandline.simulation.clients.admins import Admin
from strandline.simulation.clients.connections import Exchange
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.member import Member, committed_end
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.state.commands import Abandon, Command, Forget, GoLive, Intend, Retire
from strandline.tiered.state.transitions import Refusal

REPEATED_SHARE = 0.1
KINDS = ("intend", "intend", "live", "live", "live", "abandon", "retire", "forget")
OBJECT_BYTES = 1_000
DIGEST_BYTES = 32
KEPT_COMMANDS_MAX = 20


class TierUploader(Admin):
    """See the module."""

    def __init__(self, name: str, cluster: SimCluster, rng: random.Random) -> None:
        super().__init__(name, cluster, rng, interval_ms=cluster.scenario.tier_interval_ms)
        self.live_count = 0
        """Objects that went live, as it was told."""
        self._proposed: list[tuple[GroupId, Command]] = []

    def act(self) -> None:
        """See `Admin`."""
        group = self.rng.choice(self.cluster.scenario.groups).group
        leader = self.find_leader(group)
        if leader != NO_BROKER:
            self.ask(leader, partial(self._propose, group), lambda: None)

    def _propose(self, group: GroupId, member: Member, exchange: Exchange) -> None:
        """Inside the broker."""
        replica = member.replication.replicas.get(group)
        if replica is None or not replica.can_serve_reads:
            return
        command = self._choose(group, replica)
        if command is None:
            exchange.settle()
            return
        self._proposed = [*self._proposed, (group, command)][-KEPT_COMMANDS_MAX:]

        def done(error: Error, refusal: Refusal | None) -> None:
            exchange.settle()
            if error is Error.NONE and refusal is None:
                self.live_count += isinstance(command, GoLive)

        replica.tier.propose(command, done)

    def _choose(self, group: GroupId, replica: Replica) -> Command | None:
        earlier = [command for known, command in self._proposed if known == group]
        if earlier and self.rng.random() < REPEATED_SHARE:
            return self.rng.choice(earlier)
        bucket = self.rng.choice(replica.log.config.remote_buckets)
        kind = self.rng.choice(KINDS)
        state = replica.tier.state
        pending, live = state.pending(bucket), state.live(bucket)
        if kind == "intend":
            return self._intend(bucket, replica)
        if kind == "live" and pending:
            return GoLive(bucket, _entry_of(pending[0]))
        if kind == "abandon" and pending:
            return Abandon(bucket, pending[-1].name, 1)
        if kind == "retire" and len(live) > 2:
            return Retire(bucket, live[0].end_offset, 1)
        known = state.buckets.get(bucket)
        if kind == "forget" and known is not None and known.removals:
            return Forget(bucket, tuple(known.removals)[:1])
        return None

    def _intend(self, bucket: str, replica: Replica) -> Intend | None:
        state = replica.tier.state
        pending = state.pending(bucket)
        base = max(one.end_offset for one in pending) if pending else state.live_end(bucket)
        if not pending and not state.live(bucket):
            base = max(base, replica.log_start_offset)
        end = committed_end(replica)
        if base >= end:
            return None
        name = f"{base}-{self.rng.getrandbits(32):08x}"
        return Intend(bucket, name, base, Offset(self.rng.randint(base + 1, end)), replica.self_id)


def _entry_of(intent: Intend) -> SegmentEntry:
    base, end = intent.base_offset, intent.end_offset
    return SegmentEntry(
        name=intent.name,
        base_offset=base,
        end_offset=end,
        data_bytes=OBJECT_BYTES // 2,
        size_bytes=OBJECT_BYTES,
        trailer_crc=0,
        max_timestamp=-1,
        max_timestamp_offset=Offset(-1),
        epochs=((Epoch(1), base),),
        digest=bytes(DIGEST_BYTES),
    )
