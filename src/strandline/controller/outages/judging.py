"""Which brokers are silent or cut off, which domains are down, and which repair waits. Pure.

Why:    re-replicating a whole zone because of a cable that comes back costs terabytes across
        regions; the repair of a single lost broker must not wait for that.
How:    Brokers that have been silent for a while count against their zone and region (`marks`).
        While a domain is down, Strandline does not replace its brokers' replicas until the domain
        is back or an operator rules otherwise; the ruling on the narrower domain counts first. A
        broker that is only cut off is never replaced. When a domain is back, each broker that stays
        silent gets the full time before it is lost. A broker that has come back is not lost for its
        absence, even if it falls silent again before it has settled.
            A new controller declares no domain newly down before other brokers have reported which
        brokers they hear: until then, a broker cut off from the controller looks silent, and by the
        log has been for long.
            Brokers in maintenance, and those being emptied, do not count at all, with exceptions:
        - If no broker of a down domain counts any more, all of them do: that does not bring it
          back.
        - If all that count are silent, those in maintenance count too: a zone in which no broker is
          heard is no single failure.
        - A maintenance in which a broker was lost is over.
        - A broker that was lost, replaced and never removed does not count while others of its
          domain are heard: it would take its zone down with the next one.
Owns:   since when domains are down, and the cuts; on the active controller. The log has whether a
        domain is down, and rulings (`Cluster.outages`); the caller passes them.
Source: design section 8; decision 0018."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from strandline.config.cluster import NO_LIMIT
from strandline.controller.balancer.health import Condition, own_look_ms
from strandline.controller.balancer.reasons import Wait
from strandline.controller.outages.domains import (
    domains_of,
    full_name,
    is_region,
    members,
    ruled_by,
    short_name,
    vantage_name,
    vantage_of,
    widening,
)
from strandline.controller.outages.happenings import Happening, Kind, brokers_text, clock_time
from strandline.controller.outages.links import Links
from strandline.controller.outages.marks import Marks, MarksOf, Share, everywhere, is_down
from strandline.controller.outages.sight import Hearing, Seen, Verdict, look
from strandline.model.cluster import NO_END_MS, UNKNOWN_MS, Domain, Labels, Outage, Ruling
from strandline.model.ids import BrokerId

CUT_MS = 10_000
"""How long a broker must be cut off before the controller reports it: for a while other brokers
still report a broker that has just come back as silent."""
_NOTHING = Outage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The configured rules."""

    lost_after_ms: int
    marks_of: MarksOf = field(default_factory=everywhere)
    hold_max_ms: int = NO_LIMIT
    """How long repair waits for a down domain without an operator's ruling; NO_LIMIT: as long as
    the domain is down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The present facts, on the active controller."""

    controller: BrokerId
    now_ms: int
    wall_ms: int
    brokers: Mapping[BrokerId, Labels]
    condition: Condition
    hears: Hearing
    leaving: Collection[BrokerId] = ()
    idle: Collection[BrokerId] = ()
    """The lost brokers that hold no replica and get none."""
    outages: Mapping[Domain, Outage] = field(default_factory=dict)
    back_ms: Mapping[Domain, int] = field(default_factory=dict)
    """{domain that was down by the log: monotonic, since when it is not}"""
    silent_since_ms: Mapping[BrokerId, int] = field(default_factory=dict)
    """{silent broker: since when, in ms since 1970}; where it is missing, by `condition`."""

    def said_since_ms(self, broker: BrokerId) -> int:
        """Since when a broker is silent, in ms since 1970, for people."""
        down_ms = self.now_ms - self.condition.down_since_ms[broker]
        return self.silent_since_ms.get(broker, self.wall_ms - down_ms)

    def monotonic_ms(self, since_wall_ms: int) -> int:
        """The same moment by the clock of `now_ms`; never later than now."""
        return self.now_ms - max(0, self.wall_ms - since_wall_ms)


@dataclass(frozen=True, slots=True)
class DomainView:
    """A zone or a region now. `since_ms`: monotonic, since when it is down, for people: as the
    first controller that knew has recorded it."""

    brokers: frozenset[BrokerId]
    silent: frozenset[BrokerId]
    planned: frozenset[BrokerId]
    """The brokers in maintenance, to be emptied, or replaced: they do not count."""
    is_down: bool
    was_down: bool
    """Whether it was down at the last look, or by the log."""
    outage: Outage
    marks: Marks
    since_ms: int | None = None
    ruled: Domain | None = None
    """The domain with the ruling that applies: itself or its region; None without a ruling."""
    is_held: bool = False
    """Whether its replicas are not replaced elsewhere: by that ruling, or because the domain or its
    region is down."""

    @property
    def total(self) -> int:
        """How many brokers count."""
        return len(self.brokers - self.planned)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The conclusions from all of it."""

    seen: Mapping[BrokerId, Seen] = field(default_factory=dict)
    domains: Mapping[Domain, DomainView] = field(default_factory=dict)
    happenings: tuple[Happening, ...] = ()
    held: Mapping[BrokerId, Wait] = field(default_factory=dict)
    """{broker whose replicas are not replaced: the reason, as a code of the balancer and text}"""
    lost: frozenset[BrokerId] = frozenset()
    """The brokers that an operator has declared lost."""
    wanted: Mapping[Domain, Outage] = field(default_factory=dict)
    """{domain: its state that the log should have}, if the log has another one."""
    is_settled: bool = True
    """Whether this controller knows enough to declare a domain newly down."""

    @property
    def silent(self) -> frozenset[BrokerId]:
        """The brokers that neither the controller nor enough zones hear."""
        return frozenset(one for one, seen in self.seen.items() if seen.verdict is Verdict.SILENT)

    @property
    def unheard(self) -> frozenset[BrokerId]:
        """Those of the silent that no zone hears, either."""
        return frozenset(one for one in self.silent if not self.seen[one].hearing)

    @property
    def has_cut(self) -> bool:
        """Whether some hear a broker that others do not."""
        return any(one.verdict is Verdict.CUT for one in self.seen.values())


@dataclass(slots=True)
class _Down:
    """`since_ms`: monotonic, by this controller's own looks; holds go by it. `since_wall_ms`: since
    1970, by the log if that has it; people are told this."""

    since_ms: int
    since_wall_ms: int


class Outages:
    """See the module."""

    def __init__(self) -> None:
        self._began_ms: int | None = None
        """When this controller looked for the first time; monotonic."""
        self._is_settled = False
        self._down: dict[Domain, _Down] = {}
        # {domain that was down: since when it is not}
        self._back_ms: dict[Domain, int] = {}
        # {broker that is cut off: since when}
        self._cut_ms: dict[BrokerId, int] = {}
        self._links = Links()
        self._held: Mapping[BrokerId, Wait] = {}
        # Brokers that came, or were up for a while, after their domain was declared lost.
        self._unlost: set[BrokerId] = set()

    def step(self, scene: Scene, rules: Rules) -> Judgement:
        """Judge anew; called about once a second."""
        seen = look(scene.brokers, scene.hears, scene.controller)
        patience_ms = own_look_ms(rules.lost_after_ms)
        down_since_ms = scene.condition.down_since_ms
        unheard = frozenset(
            one for one in down_since_ms if one in seen and seen[one].verdict is Verdict.SILENT
        )
        self._settle(scene, patience_ms)
        silent = frozenset(
            one
            for one in unheard
            if self._is_settled and scene.now_ms - down_since_ms[one] >= patience_ms
        )
        domains = self._look_at_domains(scene, rules, unheard, silent)
        for domain, view in domains.items():
            has_waiting = _has_waiting(domain, domains, scene, seen)
            outage = self._ruled(view, scene, has_waiting=has_waiting)
            domains[domain] = replace(view, outage=outage)
        outages = {domain: view.outage for domain, view in domains.items()}
        for domain, view in domains.items():
            ruled = ruled_by(domain, outages)
            if ruled is None:
                is_held = self._is_held(domain, scene, rules)
            else:
                is_held = outages[ruled].ruling is Ruling.HOLD
            domains[domain] = replace(view, ruled=ruled, is_held=is_held)
        wanted = {one: _NOTHING for one in scene.outages if one not in domains}
        for domain, outage in outages.items():
            if outage != scene.outages.get(domain, _NOTHING):
                wanted[domain] = outage
        self._forget(domains, seen, scene.now_ms)
        self._links.look(
            scene.now_ms,
            brokers=scene.brokers,
            hears=scene.hears,
            seen=seen,
            controller=scene.controller,
        )
        happenings = tuple(self._happenings(scene, domains, seen, silent))
        self._spare_survivors(scene, domains)
        lost, held = self._held_and_lost(scene, rules, domains, seen, silent)
        assert lost.isdisjoint(held), "a broker is replaced or waited for, not both"
        self._held = held
        return Judgement(seen, domains, happenings, held, lost, wanted, self._is_settled)

    def _settle(self, scene: Scene, patience_ms: int) -> None:
        """Settled once all brokers that were not silent before have reported, or once this
        controller has looked for as long as a broker takes to be lost to it."""
        if self._began_ms is None:
            self._began_ms = scene.now_ms
        assert self._began_ms <= scene.now_ms, "monotonic time never goes back"
        began_ms, down_since_ms = self._began_ms, scene.condition.down_since_ms
        without_report = scene.brokers.keys() - scene.hears.keys()
        awaited = [one for one in without_report if down_since_ms.get(one, began_ms) >= began_ms]
        is_late = scene.now_ms - began_ms >= patience_ms
        self._is_settled = self._is_settled or is_late or not awaited

    # ---- domains ---------------------------------------------------------------------------------

    def _look_at_domains(
        self,
        scene: Scene,
        rules: Rules,
        unheard: frozenset[BrokerId],
        silent: frozenset[BrokerId],
    ) -> dict[Domain, DomainView]:
        """Which of them are down; rulings as they were before."""
        found: dict[Domain, DomainView] = {}
        all_planned = _planned(scene).union(scene.leaving)
        all_replaced = scene.condition.lost.intersection(scene.idle)
        for domain, inside in members(scene.brokers).items():
            known = scene.outages.get(domain, _NOTHING)
            was_down = known.is_down or domain in self._down
            planned = inside & all_planned
            if was_down and planned == inside:
                planned = frozenset()  # Maintenance alone does not bring it back.
            # A broker that this new controller has not heard yet is not back.
            away = inside & (unheard if was_down else silent)
            gone = away - planned
            beside = len(away & planned)
            replaced = gone & all_replaced
            if not was_down and inside - planned - gone:
                planned, gone = planned | replaced, gone - replaced
            assert gone <= inside - planned, "only brokers that count are counted as silent"
            share = Share(len(inside - planned), len(gone), beside)
            marks = rules.marks_of(domain)
            down = is_down(share, marks, was_down=was_down)
            if down and domain not in self._down:
                self._down[domain] = _since(gone, scene, share, marks, known)
                self._back_ms.pop(domain, None)
            elif not down and self._down.pop(domain, None) is not None:
                self._back_ms[domain] = scene.now_ms
            since = self._down.get(domain)
            found[domain] = DomainView(
                brokers=inside,
                silent=gone,
                planned=planned,
                is_down=down,
                was_down=was_down,
                outage=Outage(
                    down,
                    known.ruling,
                    known.until_ms,
                    UNKNOWN_MS if since is None else since.since_wall_ms,
                ),
                marks=marks,
                since_ms=None if since is None else scene.monotonic_ms(since.since_wall_ms),
            )
        assert self._down.keys().isdisjoint(self._back_ms), "a domain is down or back, not both"
        return found

    def _ruled(self, view: DomainView, scene: Scene, *, has_waiting: bool) -> Outage:
        """The operator's ruling on it, until that ends."""
        outage = view.outage
        is_over = outage.until_ms != NO_END_MS and scene.wall_ms >= outage.until_ms
        if not view.is_down and self._is_settled:
            if outage.ruling is Ruling.RELEASE:
                is_over = is_over or not has_waiting
            elif outage.ruling is Ruling.LOST:
                down = view.brokers & scene.condition.down_since_ms.keys()
                # A lost broker counts, planned or not.
                missing = Share(len(view.brokers), len(down))
                is_below = missing.silent > 0 and missing.is_below(view.marks.back_percent)
                is_over = is_over or view.was_down or not is_below
        return Outage(view.is_down, since_ms=outage.since_ms) if is_over else outage

    def _is_held(self, domain: Domain, scene: Scene, rules: Rules) -> bool:
        """Without a ruling: whether the domain or its region is down."""
        down = [self._down[one] for one in widening(domain) if one in self._down]
        return any(not _is_over(one, scene, rules) for one in down)

    def _forget(
        self, counted: Collection[Domain], seen: Mapping[BrokerId, Seen], now_ms: int
    ) -> None:
        for gone in [one for one in self._down if one not in counted]:
            del self._down[gone]
        for gone in [one for one in self._back_ms if one not in counted]:
            del self._back_ms[gone]
        cut = [one for one, what in seen.items() if what.verdict is Verdict.CUT]
        self._cut_ms = {one: self._cut_ms.get(one, now_ms) for one in cut}

    # ---- what goes on ----------------------------------------------------------------------------

    def _happenings(
        self,
        scene: Scene,
        domains: Mapping[Domain, DomainView],
        seen: Mapping[BrokerId, Seen],
        silent: frozenset[BrokerId],
    ) -> Iterator[Happening]:
        explained: set[BrokerId] = set()
        for domain in sorted(domains, key=lambda one: (not is_region(one), one)):
            view = domains[domain]
            if view.is_down and not view.silent <= explained:
                yield self._domain_down(domain, view, scene, domains)
                explained |= view.silent
        planned = _planned(scene) & scene.condition.down_since_ms.keys()
        for broker in sorted(silent | planned):
            since_ms = scene.monotonic_ms(scene.said_since_ms(broker))
            if broker in planned:
                text = f"broker {broker} is down, and in maintenance"
                yield Happening(
                    Kind.PLANNED, f"broker {broker}", text, since_ms, frozenset((broker,))
                )
            elif broker not in explained:
                yield self._broker_silent(broker, scene, domains)
        yield from self._cuts(scene, domains, seen)
        yield from self._links.happenings(scene.brokers, domains)

    def _broker_silent(
        self, broker: BrokerId, scene: Scene, domains: Mapping[Domain, DomainView]
    ) -> Happening:
        kind, since_wall_ms = Kind.BROKER, scene.said_since_ms(broker)
        since_ms = scene.monotonic_ms(since_wall_ms)
        text = f"broker {broker} is silent since {clock_time(since_wall_ms)}"
        if broker in scene.idle:
            text += ", and holds no replicas"
        for domain in domains_of(scene.brokers[broker])[:1]:
            view = domains[domain]
            if broker in view.silent:
                text += f", {len(view.silent)} of {view.total} in {full_name(domain, domains)}"
            if view.ruled is not None and domains[view.ruled].outage.ruling is Ruling.HOLD:
                kind = Kind.PLANNED
                text += f"; {full_name(view.ruled, domains)} is held by hand"
        return Happening(kind, f"broker {broker}", text, since_ms, frozenset((broker,)))

    def _domain_down(
        self,
        domain: Domain,
        view: DomainView,
        scene: Scene,
        domains: Mapping[Domain, DomainView],
    ) -> Happening:
        kind = Kind.REGION if is_region(domain) else Kind.ZONE
        if view.ruled is not None and domains[view.ruled].outage.ruling is Ruling.HOLD:
            kind = Kind.PLANNED
        name = full_name(domain, domains)
        text = self._down_text(domain, view, domains)
        since_ms = scene.monotonic_ms(self._down[domain].since_wall_ms)
        return Happening(kind, name, text, since_ms, view.silent, domain)

    def _down_text(self, domain: Domain, view: DomainView, domains: Collection[Domain]) -> str:
        since = clock_time(self._down[domain].since_wall_ms)
        name = full_name(domain, domains)
        count = f"{len(view.silent)} of {view.total} brokers silent"
        return f"{name} is down since {since}, {count}"

    def _cuts(
        self,
        scene: Scene,
        domains: Collection[Domain],
        seen: Mapping[BrokerId, Seen],
    ) -> Iterator[Happening]:
        cut: dict[Domain, list[BrokerId]] = {}
        for broker, since_ms in self._cut_ms.items():
            if scene.now_ms - since_ms >= CUT_MS:
                cut.setdefault(vantage_of(broker, scene.brokers[broker]), []).append(broker)
        for vantage in sorted(cut):
            brokers = sorted(cut[vantage])
            deaf = sorted({one for broker in brokers for one in seen[broker].deaf})
            hearing = sorted({one for broker in brokers for one in seen[broker].hearing})
            names = [vantage_name(one, domains) for one in deaf]
            where = vantage_name(vantage, domains)
            said = brokers_text(brokers)
            text = f"heartbeats of {said} in {where} reach "
            text += ", ".join(vantage_name(one, domains) for one in hearing) or "the controller"
            text += ", but not " + (", ".join(names) or "the controller")
            since_ms = min(self._cut_ms[one] for one in brokers)
            yield Happening(Kind.CUT, where, text, since_ms, frozenset(brokers))

    # ---- what follows ----------------------------------------------------------------------------

    def _spare_survivors(self, scene: Scene, domains: Mapping[Domain, DomainView]) -> None:
        """An operator's declaration covers the brokers that were silent then."""
        ruled_lost = {
            broker
            for view in domains.values()
            if view.ruled is not None and domains[view.ruled].outage.ruling is Ruling.LOST
            for broker in view.brokers
        }
        self._unlost = (self._unlost | scene.condition.settled) & ruled_lost

    def _held_and_lost(
        self,
        scene: Scene,
        rules: Rules,
        domains: Mapping[Domain, DomainView],
        seen: Mapping[BrokerId, Seen],
        silent: frozenset[BrokerId],
    ) -> tuple[frozenset[BrokerId], dict[BrokerId, Wait]]:
        held: dict[BrokerId, Wait] = {}
        lost: set[BrokerId] = set()
        condition = scene.condition
        for broker in sorted(condition.down_since_ms.keys() | condition.lost):
            if broker not in seen:
                continue
            if broker in condition.up:
                if broker in self._held:  # It was not lost; now it settles.
                    held[broker] = "zone-down", f"broker {broker} has returned"
                continue
            mine = domains_of(scene.brokers[broker])
            ruled = domains[mine[0]].ruled if mine else None
            ruling = Ruling.NONE if ruled is None else domains[ruled].outage.ruling
            if ruling is Ruling.LOST and broker in silent:
                if broker not in self._unlost:
                    lost.add(broker)
            elif ruling is Ruling.LOST and seen[broker].verdict is Verdict.CUT:
                held[broker] = _cut_off(broker, mine, domains)
            elif ruling is Ruling.HOLD and ruled is not None:
                held[broker] = "zone-down", _hold_text(ruled, domains)
            elif ruling is Ruling.NONE:
                why = self._why_held(broker, mine, scene, rules, domains, seen)
                if why is not None:
                    held[broker] = why
        return frozenset(lost), held

    def _why_held(
        self,
        broker: BrokerId,
        mine: tuple[Domain, ...],
        scene: Scene,
        rules: Rules,
        domains: Mapping[Domain, DomainView],
        seen: Mapping[BrokerId, Seen],
    ) -> Wait | None:
        for domain in reversed(mine):
            if domains[domain].is_held:
                text = self._down_text(domain, domains[domain], domains)
                name = short_name(domain, domains)
                text += f": held until it returns or you run `strandline zone release {name}`"
                return "zone-down", text
        if seen[broker].verdict is Verdict.CUT:
            return _cut_off(broker, mine, domains)
        for domain in mine:
            back_ms = self._back_ms.get(domain, scene.back_ms.get(domain))
            if back_ms is not None and scene.now_ms - back_ms < rules.lost_after_ms:
                return "zone-down", (
                    f"{full_name(domain, domains)} is back, but broker {broker} is not: it counts "
                    f"as lost after {rules.lost_after_ms / 1_000:g} s"
                )
        silent_ms = scene.now_ms - scene.condition.down_since_ms.get(broker, scene.now_ms)
        is_early = broker in scene.condition.lost and silent_ms < rules.lost_after_ms
        if is_early and broker in self._held:  # Back for a moment; it was not lost before.
            text = f"broker {broker} returned briefly: it counts as lost after "
            return "zone-down", text + f"{rules.lost_after_ms / 1_000:g} s"
        return None


def _planned(scene: Scene) -> frozenset[BrokerId]:
    """The brokers in maintenance that were not lost in it."""
    return scene.condition.spared - scene.condition.lost


def _has_waiting(
    domain: Domain,
    domains: Mapping[Domain, DomainView],
    scene: Scene,
    seen: Mapping[BrokerId, Seen],
) -> bool:
    """Whether some brokers in the domain would be held without its release, though it is not down:
    because of its region, of a zone in it, or because the controller is cut off from them."""
    for other, view in domains.items():
        is_wider = other in widening(domain)[1:]
        if is_wider and (view.is_down or view.outage.ruling is Ruling.HOLD):
            return True
        if view.is_down and domain in widening(other)[1:]:
            return True
    unreached = domains[domain].brokers & scene.condition.down_since_ms.keys()
    return any(seen[one].verdict is Verdict.CUT for one in unreached)


def _since(
    gone: Collection[BrokerId], scene: Scene, share: Share, marks: Marks, known: Outage
) -> _Down:
    """When the share fell below the low mark, by when its brokers fell silent. `known`: by the
    log."""
    since_wall_ms = known.since_ms
    if since_wall_ms == UNKNOWN_MS:
        walls = [scene.said_since_ms(one) for one in gone]
        since_wall_ms = _fell_ms(walls, share, marks, otherwise=scene.wall_ms)
    times = [scene.condition.down_since_ms[one] for one in gone]
    return _Down(_fell_ms(times, share, marks, otherwise=scene.now_ms), since_wall_ms)


def _fell_ms(times: Iterable[int], share: Share, marks: Marks, *, otherwise: int) -> int:
    """The moment when the share fell below the low mark. `times`: when brokers fell silent."""
    ordered = sorted(times)
    for count, since_ms in enumerate(ordered, 1):
        if is_down(replace(share, silent=count), marks, was_down=False):
            return since_ms
    return ordered[-1] if ordered else otherwise


def _is_over(since: _Down, scene: Scene, rules: Rules) -> bool:
    return rules.hold_max_ms != NO_LIMIT and scene.now_ms - since.since_ms >= rules.hold_max_ms


def _cut_off(broker: BrokerId, mine: Sequence[Domain], known: Collection[Domain]) -> Wait:
    text = (
        f"broker {broker} is cut off from the controller, but other brokers reach it: held "
        "until it returns"
    )
    if mine:
        text += f" or you run `strandline zone release {short_name(mine[0], known)}`"
    return "cut-off", text


def _hold_text(domain: Domain, domains: Mapping[Domain, DomainView]) -> str:
    until_ms = domains[domain].outage.until_ms
    text = f"{full_name(domain, domains)} is held by hand until "
    if until_ms != NO_END_MS:
        text += f"{clock_time(until_ms)} or "
    return text + f"you run `strandline zone release {short_name(domain, domains)}`"
