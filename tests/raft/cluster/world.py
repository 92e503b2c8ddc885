"""A cluster of cores, the messages between them, and everybody who watches.

Why:    one place that all randomness comes from, so that a seed is a schedule.
How:    messages lie in one list; the schedule picks which is delivered, twice, or never.
Owns:   the nodes, the messages, the invariants, the trace."""

import random
from collections.abc import Callable

from tests.raft.cluster.disk import Batch
from tests.raft.cluster.invariants import Invariant, all_invariants
from tests.raft.cluster.node import Carried, Node

from strandline.raft import events, messages
from strandline.raft.core import Raft
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.log_shape import LogShape

FLIGHT_COUNT_MAX = 120


class World:
    """See the module."""

    def __init__(
        self,
        rng: random.Random,
        node_count: int,
        configuration: Configuration,
        core: type[Raft] = Raft,
    ) -> None:
        self.rng = rng
        self.core = core
        self.first_configuration = configuration
        # Steps of the schedule; the only time there is.
        self.now = 0
        # For how long a leader counts as heard.
        self.patience_steps = 10
        # How long a candidate waits before it tries again.
        self.round_steps = 20
        # The chance of a crash before each effect, and whether crashes lose what was not flushed.
        self.crash_chance = 0.0
        self.loses_power = True
        # The chance that a leader has somebody else send what is committed.
        self.peer_catchup_chance = 0.0
        # The chance that a leader sends something to one for others as well.
        self.relay_chance = 0.0
        # [(sender, receiver, message, its batches)], oldest first.
        self.flight: list[tuple[int, int, messages.Message | Carried, list[Batch]]] = []
        # {(from, to)} that deliver nothing.
        self.cuts: set[tuple[int, int]] = set()
        # Nodes that are stopped: what is sent to them waits.
        self.stopped: set[int] = set()
        self.invariants: list[Invariant] = all_invariants()
        self._watchers = {
            name: [
                getattr(invariant, name) for invariant in self.invariants if _has(invariant, name)
            ]
            for name in (
                "on_leader",
                "on_append",
                "on_truncate",
                "on_marks",
                "on_loss",
                "on_start",
                "on_reset",
            )
        }
        # Where lines of the trace go; None keeps none.
        self.trace: Callable[[str], None] | None = None
        self._last_id = 0
        self.nodes: dict[int, Node] = {}
        for node_id in range(1, node_count + 1):
            self.nodes[node_id] = Node(self, node_id, configuration)

    # ---- for nodes -------------------------------------------------------------------------------

    def make_core(self, node: Node, log: LogShape) -> Raft:
        disk = node.disk
        return self.core(
            group=1,
            self_id=node.id,
            log=log,
            epoch=disk.epoch,
            vote=disk.vote,
            configuration=disk.image.start_configuration,
            commit=node.noted_commit,
            lost_state=not disk.is_whole,
            delegated_epoch=disk.delegated_epoch,
        )

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def send(
        self, sender: int, to: int, message: messages.Message | Carried, batches: list[Batch]
    ) -> None:
        if len(self.flight) >= FLIGHT_COUNT_MAX:
            self.flight.pop(0)
        self.flight.append((sender, to, message, batches))

    def watch(self, name: str, *arguments: object) -> None:
        for watcher in self._watchers[name]:
            watcher(*arguments)

    def watch_marks(self, node: Node, commit: int, visible: int) -> None:
        for watcher in self._watchers["on_marks"]:
            watcher(node, commit, visible)

    def trace_step(self, node: Node, event: events.Event) -> list[events.Effect]:
        if self.trace is None:
            return node.raft.step(event)
        effects = node.raft.step(event)
        self.note(f"{node.id} {event}")
        for effect in effects:
            self.note(f"        {effect}")
        return effects

    def note(self, line: str) -> None:
        """A line of the trace."""
        if self.trace is not None:
            self.trace(f"{self.now:5} {line}")

    # ---- for schedules ---------------------------------------------------------------------------

    def deliver(self, at: int, *, keep: bool = False) -> None:
        """Deliver the message at this place, and keep it for another time if asked to."""
        sender, to, message, batches = self.flight[at]
        if not keep:
            del self.flight[at]
        node = self.nodes[to]
        if node.is_alive and (sender, to) not in self.cuts:
            node.receive(sender, message, batches)

    def leaders(self) -> list[Node]:
        """All who think that they lead, the latest epoch last."""
        leading = [n for n in self.nodes.values() if n.is_alive and n.raft.is_leader]
        return sorted(leading, key=lambda node: node.raft.epoch)


def _has(invariant: Invariant, name: str) -> bool:
    return getattr(type(invariant), name) is not getattr(Invariant, name)
