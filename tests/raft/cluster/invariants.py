"""What must hold in every schedule, each as a class that watches the nodes.

Why:    a property with a name can be looked up, broken by a mutant, and cited in a report.
How:    nodes call `on_...` as things happen; a violation raises `InvariantError`, with the name.
        Log matching is checked by induction: equal (index, epoch) must mean equal id and equal
        (index, epoch) before it.
Source: Raft thesis, figure 3.2; design sections 4 and 10."""

from typing import TYPE_CHECKING

from tests.raft.cluster.disk import Batch, data_count

if TYPE_CHECKING:
    from tests.raft.cluster.node import Node


class InvariantError(AssertionError):
    """An invariant does not hold."""


class Invariant:
    """Watches; every method may be left out."""

    def require(self, condition: object, message: str) -> None:
        if not condition:
            raise InvariantError(f"{type(self).__name__}: {message}")

    def on_leader(self, node: "Node") -> None:
        """The node was elected."""

    def on_append(self, node: "Node", batch: Batch, previous_epoch: int) -> None:
        """The node appended a batch after an entry of `previous_epoch`."""

    def on_truncate(self, node: "Node", from_index: int) -> None:
        """The node is about to cut its log; its core has already."""

    def on_marks(self, node: "Node", commit: int, visible: int) -> None:
        """The node's marks moved up to these, after the effects of the step."""

    def on_reset(self, node: "Node", start_index: int, start_offset: int) -> None:
        """The node begins its log anew."""

    def on_loss(self, node: "Node") -> None:
        """The node's disk lost something that was not flushed, or everything."""

    def on_start(self, node: "Node") -> None:
        """The node (re)started."""


class SingleLeaderPerEpoch(Invariant):
    """At most one leader is elected in an epoch (3.2, election safety)."""

    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}

    def on_leader(self, node: "Node") -> None:
        leader = self.leaders.setdefault(node.raft.epoch, node.id)
        self.require(leader == node.id, f"{leader} and {node.id} lead epoch {node.raft.epoch}")


class LogMatching(Invariant):
    """Entries of equal index and epoch are equal, and so is all before them."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, int], tuple[int, int, int]] = {}

    def on_append(self, node: "Node", batch: Batch, previous_epoch: int) -> None:
        value = (batch.id, batch.last_index, previous_epoch)
        known = self.seen.setdefault((batch.first_index, batch.epoch), value)
        self.require(known == value, f"{node.id} appends {batch} after {previous_epoch}: {known}")


class StateMachineSafety(Invariant):
    """No two replicas commit different entries at one index."""

    def __init__(self) -> None:
        self.committed: dict[int, Batch] = {}
        # {epoch: the last index that was committed in it}
        self.ends: dict[int, int] = {}
        self.reached: dict[int, int] = {}

    def committed_before(self, epoch: int) -> int:
        """The last index that was committed in an epoch before this one."""
        return max((end for at, end in self.ends.items() if at < epoch), default=-1)

    def on_start(self, node: "Node") -> None:
        """It may have stopped before it told of marks that it had noted."""
        self.reached[node.id] = node.disk.image.start_index - 1
        self.on_marks(node, node.raft.commit, node.raft.visible)

    def on_marks(self, node: "Node", commit: int, visible: int) -> None:
        image = node.disk.image
        index = max(self.reached[node.id] + 1, image.start_index)
        self.reached[node.id] = max(commit, self.reached[node.id])
        at = image.position(index) if index <= commit else 0
        while index <= commit:
            batch = image.batches[at]
            self.require(batch.last_index <= commit, f"{node.id} commits half of {batch}")
            known = self.committed.setdefault(batch.first_index, batch)
            self.require(known == batch, f"{node.id} commits {batch}, but {known} is committed")
            index = batch.last_index + 1
            at += 1
        epoch = node.counted_epoch if node.has_counted else int(node.raft.epoch)
        self.ends[epoch] = max(self.ends.get(epoch, -1), commit)


class OffsetsDense(Invariant):
    """Markers take no offset: a log that begins anew begins at the offset of its first record."""

    def __init__(self, safety: StateMachineSafety) -> None:
        self.safety = safety

    def on_reset(self, node: "Node", start_index: int, start_offset: int) -> None:
        below = [b for index, b in self.safety.committed.items() if index < start_index]
        self.require(data_count(below) == start_offset, f"{start_index} is not {start_offset}")


class LeaderCompleteness(Invariant):
    """A leader has every entry that was committed in an epoch before its own (3.6.3).

    Who was given its votes long ago may come to lead when a later epoch has begun."""

    def __init__(self, safety: StateMachineSafety) -> None:
        self.safety = safety

    def on_leader(self, node: "Node") -> None:
        image = node.disk.image
        end = self.safety.committed_before(node.raft.epoch)
        self.require(image.last_index >= end, f"{node.id} leads without the committed {end}")
        for batch in image.batches:
            if batch.first_index > end:
                return
            known = self.safety.committed.get(batch.first_index)
            self.require(known in (None, batch), f"{node.id} leads with {batch}, not {known}")


class CommittedNeverLost(Invariant):
    """What a leader reports as committed is durable on a write quorum.

    A disk that was lost after it had acknowledged counts: that loss is what the quorum is for."""

    def __init__(self) -> None:
        self.marks: dict[int, int] = {}

    def on_start(self, node: "Node") -> None:
        self.marks[node.id] = node.raft.commit

    def on_marks(self, node: "Node", commit: int, visible: int) -> None:
        has_advanced = commit > self.marks[node.id]
        self.marks[node.id] = commit
        if not has_advanced or not node.has_counted:
            return
        log = node.disk.image
        if commit < log.start_index:
            return
        last = next(b for b in reversed(log.batches) if b.last_index <= commit)
        configuration = node.counted
        holders = [
            other.id
            for other in node.world.nodes.values()
            if any(image.holds(last) for image in (other.disk.durable, *other.lost_images))
        ]
        self.require(
            configuration.can_commit(holders), f"{node.id} commits {last}, durable on {holders}"
        )


class CommitMonotonic(Invariant):
    """The commit never falls while a replica lives, and never passes visible or the log's end."""

    def __init__(self) -> None:
        self.marks: dict[int, int] = {}

    def on_start(self, node: "Node") -> None:
        self.marks[node.id] = node.raft.commit

    def on_marks(self, node: "Node", commit: int, visible: int) -> None:
        self.require(commit >= self.marks[node.id], f"{node.id} falls to {commit}")
        self.require(commit <= visible <= node.disk.image.last_index, f"{commit} {visible}")
        self.marks[node.id] = commit

    def on_truncate(self, node: "Node", from_index: int) -> None:
        self.require(from_index > self.marks[node.id], f"{node.id} cuts committed {from_index}")


class VisibleMonotonicPerReplica(Invariant):
    """What readers saw stays, unless a disk lost something that was not flushed."""

    def __init__(self) -> None:
        self.marks: dict[int, int] = {}
        self.seen: dict[int, Batch] = {}
        self.has_loss = False

    def on_loss(self, node: "Node") -> None:
        self.has_loss = True

    def on_start(self, node: "Node") -> None:
        self.marks[node.id] = node.raft.visible

    def on_marks(self, node: "Node", commit: int, visible: int) -> None:
        if self.has_loss:
            return
        before = self.marks[node.id]
        self.require(visible >= before, f"{node.id} falls from {before} to {visible}")
        self.marks[node.id] = visible
        for batch in reversed(node.disk.image.batches):
            if batch.last_index <= before:
                break
            if batch.last_index <= visible:
                known = self.seen.setdefault(batch.first_index, batch)
                self.require(known == batch, f"{node.id} shows {batch}, others saw {known}")

    def on_truncate(self, node: "Node", from_index: int) -> None:
        seen = self.marks[node.id]
        self.require(self.has_loss or from_index > seen, f"{node.id} cuts visible {from_index}")


class VisibleNeedsFlush(Invariant):
    """Beyond the commit, only what lies at or below a relaxed entry is visible."""

    def __init__(self) -> None:
        self.marks: dict[int, int] = {}

    def on_start(self, node: "Node") -> None:
        self.marks[node.id] = node.raft.visible

    def on_marks(self, node: "Node", commit: int, visible: int) -> None:
        has_advanced = visible > self.marks[node.id]
        self.marks[node.id] = visible
        if node.has_counted and has_advanced and visible > commit:
            last = node.unflushed_visible.get(node.counted_epoch, -1)
            self.require(visible <= last, f"{visible} is visible, relaxed up to {last}")


class LeadersAreVoters(Invariant):
    """Observers never lead; nor does a replica that has lost its disk and not rejoined."""

    def on_leader(self, node: "Node") -> None:
        self.require(not node.raft.has_lost_state, f"{node.id} leads without its disk")
        ever = {*node.disk.image.start_configuration.all_voters}
        for _, configuration in node.raft.log.configurations:
            ever.update(configuration.all_voters)
        self.require(node.id in ever, f"{node.id} leads and was never a voter")


def all_invariants() -> list[Invariant]:
    """One of each, fresh."""
    safety = StateMachineSafety()
    return [
        SingleLeaderPerEpoch(),
        LogMatching(),
        safety,
        OffsetsDense(safety),
        LeaderCompleteness(safety),
        CommittedNeverLost(),
        CommitMonotonic(),
        VisibleMonotonicPerReplica(),
        VisibleNeedsFlush(),
        LeadersAreVoters(),
    ]
