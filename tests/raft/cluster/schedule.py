"""A random schedule from a seed: trouble first, then peace.

Why:    one number names a whole history, and finds it again.
Owns:   one world.
Source: design section 10; Kafka's RaftEventSimulationTest."""

import random
from collections.abc import Callable

from tests.raft.cluster.character import draw_character
from tests.raft.cluster.peace import Peace
from tests.raft.cluster.trouble import Trouble
from tests.raft.cluster.world import World

from strandline.raft.core import Raft


class Schedule:
    """See the module."""

    def __init__(
        self,
        seed: int,
        *,
        core: type[Raft] = Raft,
        trace: Callable[[str], None] | None = None,
    ) -> None:
        rng = random.Random(seed)
        character = draw_character(rng, seed)
        world = self.world = World(rng, character.node_count, character.configuration, core)
        world.trace = trace
        world.patience_steps = character.patience_steps
        world.round_steps = character.round_steps
        world.crash_chance = character.crash_chance
        world.loses_power = character.loses_power
        world.peer_catchup_chance = character.peer_catchup_chance
        world.relay_chance = character.relay_chance
        self._trouble = Trouble(world, rng, character)
        self._peace = Peace(world, rng)

    def run(self) -> None:
        """Raises InvariantError, or an AssertionError of the core's own."""
        self._trouble.make()
        self.world.note("peace")
        self._peace.make()
