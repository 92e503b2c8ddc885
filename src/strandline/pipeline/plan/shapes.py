"""A partition's replicas in the simulation: masks over all brokers in, positions out.

Why:    losses are masks over a cluster's brokers, behaviour is by position; both are looked up for
        each step of each partition.
Owns:   shapes by replicas, and behaviours by pattern, for one topic."""

from dataclasses import dataclass

from strandline.model.cluster import Roles
from strandline.pipeline.plan.behaviour import Around, Behaviour, Danger, signature_of
from strandline.placement.solver.request import Request
from strandline.placement.survival.courses import Rules
from strandline.placement.topology.universe import Universe, bits_of

SILENCES_KEPT_MAX = 100_000
"""Of which it is known which regions are down; then they are worked out anew."""


@dataclass(eq=False, slots=True)
class Shape:
    """Replicas, and their behaviour. `core`: the brokers that matter one by one, which are those
    that hold a replica (`replicas`) and the controller's voters; over the universe's bits.
    `numbers`: of each domain of `behaviour.domains`, which one of all domains it is here."""

    roles: Roles
    behaviour: Behaviour
    core: int
    replicas: int
    bits: tuple[int, ...]
    numbers: tuple[int, ...]
    _local: dict[int, int]
    _fatal: dict[int, int]

    def local(self, mask: int, down: int = 0) -> int:
        """These brokers as positions. `down`: all brokers of regions that are down; of others that
        do not matter one by one, only this counts."""
        mask = mask & self.core | down & ~self.core
        found = self._local.get(mask)
        if found is None:
            found = sum(1 << position for position, bit in enumerate(self.bits) if mask >> bit & 1)
            self._local[mask] = found
        return found

    def fatal(self, danger: Danger) -> int:
        """The domains whose disks would take records along, as a mask over all domains."""
        found = self._fatal.get(danger.fatal)
        if found is None:
            found = 0
            for place, number in enumerate(self.numbers):
                found |= (danger.fatal >> place & 1) << number
            self._fatal[danger.fatal] = found
        return found


class Shapes:
    """Shapes of one topic; those with the same pattern share a behaviour."""

    def __init__(self, universe: Universe, request: Request, rules: Rules, around: Around) -> None:
        self._universe = universe
        self._request = request
        self._rules = rules
        self._around = around
        self._shapes: dict[Roles, Shape] = {}
        self._down: dict[int, int] = {}
        self.behaviours: dict[object, Behaviour] = {}
        """{pattern: behaviour}"""

    def of(self, roles: Roles) -> Shape:
        """The shape of these replicas."""
        if roles not in self._shapes:
            self._shapes[roles] = self._make(roles)
        return self._shapes[roles]

    def down(self, silent: int) -> int:
        """All brokers of the regions that are down when these are silent; none if no promotion goes
        by regions."""
        if not self._around.everyone:
            return 0
        found = self._down.get(silent)
        if found is None:
            if len(self._down) >= SILENCES_KEPT_MAX:
                self._down.clear()
            candidates = self._universe.candidates
            regions = self._rules.regions.down(candidates[bit].id for bit in bits_of(silent))
            found = self._down[silent] = self._universe.where("region", regions)
        return found

    def _make(self, roles: Roles) -> Shape:
        universe, around = self._universe, self._around
        pattern = signature_of(roles, universe, around)
        if pattern not in self.behaviours:
            self.behaviours[pattern] = Behaviour(
                roles, universe, self._request, rules=self._rules, around=around
            )
        behaviour = self.behaviours[pattern]
        # Within a level, domains do not overlap: level and positions name one.
        here = {
            (around.domains[number].level, local): number
            for local, number in around.local_domains(roles, universe)
        }
        bits = tuple(universe.index[one] for one in around.positions(roles))
        return Shape(
            roles=roles,
            behaviour=behaviour,
            core=universe.mask(universe.index[one] for one in (*roles.all, *around.controllers)),
            replicas=universe.mask(universe.index[one] for one in roles.all),
            bits=bits,
            numbers=tuple(here[domain.level, local] for local, domain in behaviour.domains),
            _local={},
            _fatal={},
        )
