"""The constraints of a topic's policy on the present brokers, which judge and repair replicas.

Why:    thousands of partitions share a few policies. This works out each policy once for this
        cluster, and judges each set of replicas once.
How:    The number of voters is that of the best placement over all registered brokers, up or down,
        without those being decommissioned: it must not change because a broker is away. Replicas
        that satisfy the policy with fewer voters stay as they are. To the constraints, lost brokers
        and those being decommissioned do not exist, and all others are active. Some of the former
        are excused if no broker can replace them while others can be replaced.
Owns:   its results, for one set of brokers, labels and lost ones.
Source: decisions 0008 and 0010."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from strandline.base.errors import ApiError
from strandline.config.topic import TOPIC_KEYS_BY_NAME, TopicConfig
from strandline.controller.placing.policies import (
    CLUSTER_POLICY_KEYS,
    MIN_INSYNC,
    TOPIC_POLICY_KEYS,
    policy_of,
)
from strandline.model.cluster import Broker, Cluster, Roles, Topic
from strandline.model.ids import BrokerId
from strandline.placement.constraints.contract import Seat
from strandline.placement.policy.document import Policy, needed_labels, with_observers
from strandline.placement.solver.judge import judge, seat, seated
from strandline.placement.solver.plan import Plan, make_plan
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.request import Request
from strandline.placement.solver.search import Search, orbits_of
from strandline.placement.solver.solve import best_plan, missing_for
from strandline.placement.topology.labels import tell_missing
from strandline.placement.topology.universe import BrokerState, Candidate, Universe

NODES_MAX = 1_000
"""Steps of a search for the best placement: a search must not block the controller. A result that
these steps do not prove moves no replica."""
SEARCHES_KEPT_MAX = 200_000
"""How many searches of each kind the cache keeps, successful or not; then it drops all of them."""
SPREAD = Policy(distinct_host=False)
"""The policy of topics without one: their spread, and nothing else."""

_TOPIC_KEYS = (*TOPIC_POLICY_KEYS, MIN_INSYNC)
_CLUSTER_KEYS = (*CLUSTER_POLICY_KEYS, TOPIC_KEYS_BY_NAME[MIN_INSYNC].cluster_name)


@dataclass(slots=True, eq=False)
class Wanted:
    """A policy for so many voters, in this cluster; its observers come on top."""

    request: Request
    voters: int
    plans: "Plans"
    has_policy: bool
    key: str = ""
    """The key that gives the policy."""
    refusal: str = ""
    """Why no placement keeps all of it, even with all brokers up; empty if one does."""
    _plans: dict[frozenset[BrokerId], Plan] = field(default_factory=dict)
    _right: dict[tuple[frozenset[BrokerId], Roles], bool] = field(default_factory=dict)
    _costs: dict[Roles, int] = field(default_factory=dict)
    _best: list[int | None] = field(default_factory=list)
    _broken: dict[Roles, Mapping[str, int]] = field(default_factory=dict)

    def plan(self, excused: Collection[BrokerId] = ()) -> Plan:
        """The constraints; lost brokers are down, but for those that are excused."""
        key = frozenset(excused)
        if key not in self._plans:
            universe = self.plans.universe(self.plans.lost - key)
            self._plans[key] = make_plan(self.request, universe, voters=self.voters)
        return self._plans[key]

    def lost(self, replicas: Roles) -> tuple[BrokerId, ...]:
        """Those of the replicas whose brokers are lost, or are being decommissioned."""
        return tuple(one for one in replicas.all if one in self.plans.lost)

    def leaving(self, replicas: Roles) -> tuple[BrokerId, ...]:
        """Those of the replicas whose brokers are being decommissioned."""
        return tuple(one for one in replicas.all if one in self.plans.leaving)

    def is_right(self, replicas: Roles, excused: Collection[BrokerId] = ()) -> bool:
        """Whether these replicas keep every hard constraint, and have the required number."""
        key = frozenset(excused), replicas
        if key not in self._right:
            self._right[key] = judge(self.plan(excused), seated(replicas)).is_right
        return self._right[key]

    def cost(self, replicas: Roles) -> int:
        """Their cost by the soft constraints, on lost brokers or not."""
        if replicas not in self._costs:
            self._costs[replicas] = self.plan().cost(self.seats(replicas))
        return self._costs[replicas]

    def best_cost(self) -> int | None:
        """The least that a placement on the brokers that are not lost costs; None: not known."""
        if not self._best:
            plan = self.plan()
            found = Search(plan, orbits_of(plan), nodes_max=NODES_MAX).run()
            is_known = found.seats is not None and found.is_proved
            self._best.append(found.cost if is_known else None)
        return self._best[0]

    def broken(self, replicas: Roles) -> Mapping[str, int]:
        """{hard constraint: how many of these replicas break it}, if no broker were lost."""
        if replicas not in self._broken:
            found = Counter[str]()
            for one in judge(self.plan(self.plans.lost), seated(replicas)).violations:
                found[one.constraint] += len(one.brokers)
            self._broken[replicas] = found
        return self._broken[replicas]

    def breaks_more(self, replicas: Roles, *, than: Roles) -> bool:
        """Whether these replicas break more; if the policy cannot be met, the soft constraints
        count, too."""
        before, after = self.broken(than), self.broken(replicas)
        if any(count > before.get(name, 0) for name, count in after.items()):
            return True
        return bool(self.refusal) and self.cost(replicas) > self.cost(than)

    def unlabelled(self, replicas: Roles) -> str:
        """Which broker lacks which label, if nothing else is wrong with these replicas; else
        empty."""
        found = judge(self.plan(), seated(replicas))
        if found.unknown or found.surplus or found.missing:
            return ""
        missing = missing_for(self.request.policy, self.plan().universe.candidates)
        lacking = {one.broker for one in missing}
        if not all(lacking.issuperset(one.brokers) for one in found.violations):
            return ""
        texts = tell_missing(one for one in missing if one.broker in replicas.all)
        return f"{self.key}: {'; '.join(texts)}" if texts else ""

    def seats(self, replicas: Roles) -> list[Seat]:
        """The replicas with their groups."""
        plan = self.plan()
        index = plan.universe.index
        known = [(index[one], role) for one, role in seated(replicas)]
        return seat(plan, known)[0]

    def lead_first(
        self, replicas: Roles, led: Mapping[BrokerId, int], *, present: BrokerId
    ) -> Roles:
        """The same replicas, the first voter where leaders should be: the present preferred leader
        if it is there, else the one that leads fewest."""
        voters = replicas.voters
        may = self.may_lead(voters, near=present)
        first = present
        if present not in may:
            first = min(may, key=lambda one: (led.get(one, 0), voters.index(one)))
        order = (first, *(one for one in voters if one != first))
        return Roles(order, replicas.observers)

    def labels(self) -> list[str]:
        """The labels that distinguish replicas."""
        plan = self.plan()
        counted = plan.hard if self.has_policy else plan.soft
        found = needed_labels(self.request.policy) if self.has_policy else []
        found += [label for one in counted for label in one.labels]
        return list(dict.fromkeys(found))

    def may_lead(
        self, voters: Sequence[BrokerId], *, near: BrokerId | None = None
    ) -> list[BrokerId]:
        """Those of the voters that meet the best preference any of them meets. Where leaders
        follow the writers: those in the region of `near`, or of the first, for there they are."""
        plan = self.plan()
        if self.request.policy.leaders.follow:
            return self._in_region(voters, voters[0] if near is None else near)
        for tier in plan.leader_tiers:
            may = [
                one
                for one in voters
                if tier >> plan.universe.index[one] & 1 and one not in self.plans.lost
            ]
            if may:
                return may
        return list(voters)

    def _in_region(self, voters: Sequence[BrokerId], of: BrokerId) -> list[BrokerId]:
        brokers = self.plans.brokers
        there = [one for one in voters if one not in self.plans.lost]
        near = [one for one in there if brokers[one].labels.region == brokers[of].labels.region]
        return near or there or list(voters)


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """A topic's policy by its configuration, and the key that gives it ("" for none). `mistake`:
    why the configuration is invalid."""

    key: str
    policy: Policy
    min_insync_replicas: int
    mistake: str = ""


class Sought(NamedTuple):
    """The conditions of a search for other replicas. `takers`: brokers that may get some; `up`,
    `given_up`, `held`: the present ones that are up, that were declared lost, and that may lose
    none."""

    wanted: Wanted
    replicas: Roles
    takers: frozenset[BrokerId]
    is_best_effort: bool
    up: frozenset[BrokerId]
    given_up: frozenset[BrokerId]
    held: frozenset[BrokerId]


class Plans:
    """See the module."""

    def __init__(
        self,
        brokers: Iterable[Broker],
        lost: frozenset[BrokerId],
        leaving: frozenset[BrokerId] = frozenset(),
    ) -> None:
        self.brokers = {one.id: one for one in sorted(brokers, key=lambda one: one.id)}
        self.leaving = leaving
        """Those that are being decommissioned."""
        self.lost = lost | leaving
        """The brokers that shall hold no replicas: the balancer replaces those on them."""
        self.ids = tuple(self.brokers)
        """By bit."""
        self.hopeless: dict[Sought, tuple[str, str]] = {}
        """{search: why no broker can repair the partition}"""
        self.hopeful: set[Sought] = set()
        """The same, for partitions that a broker can repair."""
        self.places: dict[tuple[Wanted, Roles, BrokerId], Mapping[BrokerId, int]] = {}
        """{(constraints, replicas, one of them): the brokers for its place, with the cost}"""
        self._universes: dict[frozenset[BrokerId], Universe] = {}
        self._asks: dict[tuple[str | None, ...], Ask] = {}
        self._known: dict[tuple[Ask, Roles], Wanted | str] = {}
        self._wanted: dict[tuple[Ask, int, int], Wanted | str] = {}
        self._fewer: dict[tuple[Ask, int], Wanted] = {}

    def note_hopeless(self, sought: Sought, why: tuple[str, str]) -> None:
        """Note that no broker can repair it. Room on disks comes and goes, so these notes are
        dropped once there are too many."""
        if len(self.hopeless) >= SEARCHES_KEPT_MAX:
            self.hopeless.clear()
        self.hopeless[sought] = why

    def note_hopeful(self, sought: Sought) -> None:
        """Note that a broker can repair it; dropped alike."""
        if len(self.hopeful) >= SEARCHES_KEPT_MAX:
            self.hopeful.clear()
        self.hopeful.add(sought)

    def are_for(
        self, brokers: Iterable[Broker], lost: frozenset[BrokerId], leaving: frozenset[BrokerId]
    ) -> bool:
        """Whether these results still hold."""
        labels = {one.id: one.labels for one in brokers}
        if (lost | leaving, leaving) != (self.lost, self.leaving):
            return False
        return labels == {one.id: one.labels for one in self.brokers.values()}

    def universe(self, down: Collection[BrokerId]) -> Universe:
        """The brokers, with these down."""
        key = frozenset(down)
        if key not in self._universes:
            absent = dict.fromkeys(key, BrokerState.DOWN)
            absent |= dict.fromkeys(key & self.leaving, BrokerState.DECOMMISSIONING)
            self._universes[key] = Universe(
                Candidate(
                    id=one.id,
                    labels=one.labels,
                    state=absent.get(one.id, BrokerState.ACTIVE),
                )
                for one in self.brokers.values()
            )
        return self._universes[key]

    def mask(self, brokers: Collection[BrokerId]) -> int:
        """These brokers, as bits of every universe here."""
        return Universe.mask(bit for bit, one in enumerate(self.ids) if one in brokers)

    def ask(self, topic: Topic, cluster: Cluster) -> Ask:
        """The topic's present policy."""
        values = tuple(topic.configs.get(name) for name in _TOPIC_KEYS)
        values += tuple(cluster.cluster_configs.get(name) for name in _CLUSTER_KEYS)
        if values not in self._asks:
            self._asks[values] = _read(topic, cluster)
        return self._asks[values]

    def of(self, ask: Ask, replicas: Roles) -> Wanted | str:
        """The constraints of a partition with these replicas; or why its policy is invalid."""
        key = ask, replicas
        if key not in self._known:
            self._known[key] = self._find(ask, replicas)
        return self._known[key]

    def _find(self, ask: Ask, replicas: Roles) -> Wanted | str:
        count = len(replicas.voters)
        if ask.mistake:
            return ask.mistake
        # Without a policy the number of observers stays.
        observers = 0 if ask.key else len(replicas.observers)
        key = ask, count, observers
        if key not in self._wanted:
            self._wanted[key] = self._plan(ask, count, observers)
        whole = self._wanted[key]
        if isinstance(whole, str) or count >= whole.voters:
            return whole
        if ask.policy.fixed_replicas() is None:
            if (ask, count) not in self._fewer:
                self._fewer[ask, count] = Wanted(
                    whole.request, count, self, has_policy=True, key=ask.key
                )
            fewer = self._fewer[ask, count]
            if fewer.is_right(replicas, self.lost):
                return fewer
        return whole

    def _plan(self, ask: Ask, count: int, observers: int) -> Wanted | str:
        request = Request(
            policy=with_observers(ask.policy, observers),
            min_insync_replicas=ask.min_insync_replicas,
            default_voters=count,
        )
        if not ask.key:
            return Wanted(request, count, self, has_policy=False)
        universe = self.universe(self.leaving)
        planned = best_plan(request, universe, nodes_max=NODES_MAX, names_blocking=False)
        count, refusal = (
            (count, f"{ask.key}: {planned}")
            if isinstance(planned, Refusal)
            else (planned[0].shape.voters, "")
        )
        return Wanted(request, count, self, has_policy=True, key=ask.key, refusal=refusal)


def _read(topic: Topic, cluster: Cluster) -> Ask:
    config = TopicConfig.from_overrides(cluster.cluster_configs, topic.configs)
    least = config.min_insync_replicas
    try:
        found = policy_of(topic.configs, cluster.cluster_configs)
    except ApiError as error:
        return Ask("?", SPREAD, least, error.message)
    return Ask("", SPREAD, least) if found is None else Ask(found[0], found[1], least)
