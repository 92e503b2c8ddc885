"""A partition's replicas in the simulation: masks over all brokers in, positions out.

Why:    losses are masks over a cluster's brokers, behaviour is by position; both are looked up for
        each step of each partition.
Owns:   shapes by replicas, and behaviours by pattern, for one topic."""

from dataclasses import dataclass

from strandline.model.cluster import Roles
from strandline.pipeline.plan.behaviour import Around, Behaviour, Danger, signature_of
from strandline.placement.solver.request import Request
from strandline.placement.survival.courses import Rules
from strandline.placement.topology.universe import Universe


@dataclass(eq=False, slots=True)
class Shape:
    """Replicas, and their behaviour. `mask`: the brokers that matter to it; `replicas`: those that
    hold one, both over the universe's bits. `numbers`: of each domain of `behaviour.domains`, which
    one of all domains it is here."""

    roles: Roles
    behaviour: Behaviour
    mask: int
    replicas: int
    bits: tuple[int, ...]
    numbers: tuple[int, ...]
    _local: dict[int, int]
    _fatal: dict[int, int]

    def local(self, mask: int) -> int:
        """These brokers as positions."""
        mask &= self.mask
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
        self.behaviours: dict[object, Behaviour] = {}
        """{pattern: behaviour}"""

    def of(self, roles: Roles) -> Shape:
        """The shape of these replicas."""
        if roles not in self._shapes:
            self._shapes[roles] = self._make(roles)
        return self._shapes[roles]

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
            mask=universe.mask(bits),
            replicas=universe.mask(universe.index[one] for one in roles.all),
            bits=bits,
            numbers=tuple(here[domain.level, local] for local, domain in behaviour.domains),
            _local={},
            _fatal={},
        )
