"""A snapshot of the controller's state is what its records make.

Why:    a broker that starts from a snapshot never sees the records before it: if it is of another
        offset than it says, the broker goes on with a state that no other broker has.
How:    the state after as many records has one digest, whichever broker reaches it, and however.
Owns:   the digest of each number of records; one set for each run.
Source: decision 0062."""

from strandline.model.ids import BrokerId
from strandline.simulation.invariants.facts import NOWHERE, StateReached
from strandline.simulation.invariants.invariants import Invariant


class ControllerStatesEqual(Invariant):
    """Brokers that have applied as many records of the controller's log have equal states."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[BrokerId, int]] = {}
        """{version: the broker that reached it first, and its digest}"""

    def on_state_reached(self, fact: StateReached) -> None:
        """Compare with the first broker that got so far."""
        first, digest = self._known.setdefault(fact.version, (fact.broker, fact.digest))
        if digest != fact.digest:
            raise self.broken(
                f"after {fact.version} records brokers {first} and {fact.broker} know different "
                "clusters",
                NOWHERE,
            )
