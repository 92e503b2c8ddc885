"""A client that changes something in the cluster now and then, until it is stopped.

Why:    administrators' requests meet every fault at every moment; only the requests differ.
How:    takes turns, a random time of up to twice the interval apart. A subclass says what a turn
        does.
Owns:   whether it has been stopped.
Source: design section 10."""

import random

from strandline.simulation.clients.clients import Client
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.scheduler import US_PER_MS


class Admin(Client):
    """See the module. `interval_ms`: the mean time between two turns."""

    def __init__(
        self, name: str, cluster: SimCluster, rng: random.Random, *, interval_ms: int
    ) -> None:
        super().__init__(name, cluster, rng)
        self._interval_ms = interval_ms

    def start(self) -> None:
        """Begin."""
        self._turn()

    def act(self) -> None:
        """What one turn does."""
        raise AssertionError(f"{type(self).__name__} does nothing")

    def _turn(self) -> None:
        if self.is_stopped:
            return
        self.act()
        pause_ms = self.rng.randint(1, 2 * self._interval_ms)
        self.scheduler.after(pause_ms * US_PER_MS, self._turn)
