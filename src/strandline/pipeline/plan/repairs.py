"""Where the replicas of a lost broker go, by the balancer's own search, and what copying takes.

Why:    a policy that leaves the balancer a place is whole again after a copy; another one waits for
        the broker.
How:    `controller.balancer.needs.mend` with the brokers that are lost and those that are up, once
        for each partition and such situation. A copy comes from the partition's leader.
Owns:   its answers.
Source: decision 0010."""

from dataclasses import dataclass

from strandline.controller.balancer.needs import mend
from strandline.controller.balancer.plans import Ask, Plans
from strandline.controller.placing.policies import POLICY
from strandline.model.cluster import Address, Broker, Roles
from strandline.model.ids import BrokerId
from strandline.placement.solver.request import Request
from strandline.placement.topology.universe import Universe, bits_of

PLANS_KEPT_MAX = 256
"""Sets of lost brokers whose constraints are kept; some 100 kB each."""
FOUND_KEPT_MAX = 200_000
_NOWHERE = Address("", 0)


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """The replicas after a repair; one object for each. `copies`: [(from, to)]."""

    roles: Roles
    copies: tuple[tuple[BrokerId, BrokerId], ...]


class Repairs:
    """Of one topic."""

    def __init__(self, universe: Universe, request: Request, *, has_policy: bool) -> None:
        self._universe = universe
        self._ask = Ask(POLICY if has_policy else "", request.policy, request.min_insync_replicas)
        self._brokers = tuple(
            Broker(one.id, "", _NOWHERE, _NOWHERE, one.labels) for one in universe.candidates
        )
        self._plans: dict[int, Plans] = {}
        self._found: dict[tuple[Roles, int, int], Moved | None] = {}
        self._back: dict[tuple[Roles, Roles], Moved] = {}

    def after(self, roles: Roles, lost: int, absent: int) -> Moved | None:
        """The replicas once those on `lost` brokers are replaced, while `absent` brokers get none;
        None if no broker may have them. Masks are over the universe's bits."""
        key = roles, lost, absent
        if key not in self._found:
            if len(self._found) >= FOUND_KEPT_MAX:
                self._found.clear()
            self._found[key] = self._search(roles, lost, absent)
        return self._found[key]

    def back(self, roles: Roles, home: Roles) -> Moved:
        """The replicas where they were before, once all these brokers are there again, as the
        balancer evens out."""
        key = roles, home
        if key not in self._back:
            source = next((one for one in roles.voters if one in home.all), roles.voters[0])
            new = [one for one in home.all if one not in roles.all]
            self._back[key] = Moved(home, tuple((source, one) for one in new))
        return self._back[key]

    def _search(self, roles: Roles, lost: int, absent: int) -> Moved | None:
        if lost not in self._plans:
            if len(self._plans) >= PLANS_KEPT_MAX:
                self._plans.clear()
            self._plans[lost] = Plans(self._brokers, self._named(lost))
        wanted = self._plans[lost].of(self._ask, roles)
        assert not isinstance(wanted, str), wanted
        settled = self._named(self._universe.all & ~absent)
        stay = dict.fromkeys(self._named(absent & ~lost), ("zone-down", ""))
        found = mend(wanted, roles, up=settled, settled=settled, held=stay, loads={}, led={})
        if not isinstance(found, Roles) or set(found.all) == set(roles.all):
            return None
        source = next((one for one in roles.voters if one in settled), None)
        if source is None:
            return None
        new = [one for one in found.all if one not in roles.all]
        return Moved(found, tuple((source, one) for one in new))

    def _named(self, mask: int) -> frozenset[BrokerId]:
        return frozenset(self._universe.candidates[bit].id for bit in bits_of(mask))
