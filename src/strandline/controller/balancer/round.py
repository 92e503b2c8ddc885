"""One round: looks at all partitions, and reports which move now, and why the others do not. Pure.

Why:    a round that looks at the present state misses no event, whichever controller led before;
        its report covers every partition that moves or waits.
How:    1. Count loads as they will be after the present moves, so that the order of copies does not
           matter.
        2. Look at each partition: review its move, or note its need.
        3. Meet the needs, the most urgent first, up to `moves_max`. Disks that are too full come
           after lost replicas and broken rules, and before soft rules.
        4. Only without such needs: full brokers give to empty ones.
        5. Only without these: even out leaders.
        It runs in steps, so that the driver can give the loop back between them.
Owns:   its findings. Later parts of it see the moves of earlier ones.
Source: decision 0010."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from strandline.config.cluster import ClusterConfig
from strandline.controller.balancer.disks import Room
from strandline.controller.balancer.evenness import Movable, by_broker, exchanged, uneven_pairs
from strandline.controller.balancer.health import Condition
from strandline.controller.balancer.leaders import evened_leaders
from strandline.controller.balancer.needs import (
    endless,
    hindrance,
    margin_of,
    mend,
    need_of,
)
from strandline.controller.balancer.plans import Ask, Plans, Sought, Wanted
from strandline.controller.balancer.reasons import MOVES, Wait, Waits
from strandline.controller.balancer.relief import Relief, Relieved, Stuck
from strandline.controller.balancer.undo import home_of
from strandline.controller.commands import BalancedReplicas
from strandline.model.cluster import Cluster, Partition, Roles
from strandline.model.ids import BrokerId, GroupId

COUNT_STEP = 500
LEADER_CHANGES_MAX = 100
EXCHANGES_MAX = 2_000
"""Exchanges that one round looks at for evenness."""
VAIN_MAX = 200
"""Searches in vain that one round makes: partitions that can move must not wait for those that
cannot. The round notes them, so that the next one makes others."""
AHEAD_MAX = 50
"""Searches that one round makes for partitions that must wait for their turn anyhow. The round
notes their results too, so that the next one makes others."""
NOT_KNOWN: Mapping[BrokerId, int] = {}
GOES_FIRST = -1
"""As a load: no broker has less."""
NO_TARGET = Roles(())
"""As a target: the present replicas stay."""
_RANKS = {code: rank for rank, code in enumerate(MOVES)}
_URGENT = ("broker-lost", "decommission", "best-effort", "policy-broken")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The balancer's keys of the cluster's configuration."""

    is_enabled: bool
    moves_max: int
    lost_after_ms: int
    disk_high_percent: int = 100
    disk_low_percent: int = 100
    is_best_effort: bool = False

    @classmethod
    def of(cls, values: Mapping[str, str]) -> "Settings":
        """Read the cluster's keys."""
        config = ClusterConfig.from_values(values)
        return cls(
            is_enabled=config.balancer_enable,
            moves_max=config.balancer_moves_max,
            lost_after_ms=config.broker_lost_after_ms,
            disk_high_percent=config.balancer_disk_high_percent,
            disk_low_percent=config.disk_low_percent,
            is_best_effort=config.balancer_best_effort_enable,
        )


@dataclass(frozen=True, slots=True)
class Move:
    """A move to request; `why`: a code of `reasons.MOVES`."""

    command: BalancedReplicas
    code: str


@dataclass(frozen=True, slots=True)
class _Need:
    partition: Partition
    wanted: Wanted
    code: str
    margin: int
    """How many more of those that vote may go down before it stops."""

    def rank(self) -> tuple[int, int, str, int]:
        """The least is met first. By names, for no record tells the order in which topics were
        created."""
        partition = self.partition
        return _RANKS[self.code], self.margin, partition.topic, partition.index


class Round:
    """See the module. `reasons`: {group: why the balancer moves it}, as far as remembered;
    `stopped`: groups whose move an operator stopped; `by_hand`: groups that an operator moved
    lately; `room`: on disks, as far as it is known; `used_percent`: {broker: how full its
    disk is}."""

    def __init__(
        self,
        cluster: Cluster,
        condition: Condition,
        plans: Plans,
        *,
        settings: Settings,
        reasons: Mapping[GroupId, str],
        stopped: Collection[GroupId] = (),
        by_hand: Collection[GroupId] = (),
        room: Room | None = None,
        used_percent: Mapping[BrokerId, int] = NOT_KNOWN,
    ) -> None:
        self.moves: list[Move] = []
        self.waits = Waits()
        self.moving_count = 0
        """Partitions that the balancer has set moving, those of this round included."""
        self.is_cut = False
        """Whether this round skipped searches: another one is due at once."""
        self.is_short = False
        """Whether a move waits for room on disks: another round is due after their next report."""
        self.found_reasons: dict[GroupId, str] = {}
        """{group: why the balancer must have set it moving}, of those of which that is forgotten"""
        self._cluster = cluster
        self._seen_at = cluster.version
        self._condition = condition
        self._plans = plans
        self._settings = settings
        self._reasons = reasons
        self._stopped = stopped
        self._by_hand = by_hand
        self._room = room or Room.unknown()
        self._used_percent = used_percent
        self._loads: Counter[BrokerId] = Counter()
        self._led: Counter[BrokerId] = Counter()
        self._needs: list[_Need] = []
        self._movable: list[Movable] = []
        self._relievable: list[Movable] = []
        self._urgent_count = self._vain_count = self._ahead_count = 0
        self._leader_changes = 0

    @property
    def sizes(self) -> Mapping[GroupId, int]:
        """{group: bytes of its log}, as far as that is known."""
        return self._room.sizes

    def steps(self) -> Iterator[None]:
        """The round, in steps. The state may change between them: the controller checks the
        requested moves against it again."""
        yield from self._count()
        for _, topic in sorted(self._cluster.topics.items()):
            ask = self._plans.ask(topic, self._cluster)
            for partition in list(topic.partitions):
                if all(one in self._plans.brokers for one in partition.hosts):
                    self._look(partition, ask)
                yield
        self._needs.sort(key=_Need.rank)
        urgent = [need for need in self._needs if need.code in _URGENT]
        for need in urgent:
            self._meet(need)
            yield
        yield from self._relieve()
        moved = {move.command.group for move in self.moves}
        for need in self._needs[len(urgent) :]:
            if need.partition.group not in moved:
                self._meet(need)
            yield
        is_quiet = not self.moves and not self.moving_count and not self.is_cut
        if is_quiet and self._settings.is_enabled:
            yield from self._even_out()
            yield from self._even_leaders()

    def _count(self) -> Iterator[None]:
        for number, partition in enumerate(list(self._cluster.groups.values())):
            after = partition.wanted if partition.is_moving else partition.roles
            self._loads.update(after.all)
            self._led[after.voters[0]] += 1
            if number % COUNT_STEP == 0:
                yield
        yield from self._room.steps(self._cluster)

    # ---- looking -----------------------------------------------------------------------------

    def _look(self, partition: Partition, ask: Ask) -> None:
        wanted = self._plans.of(ask, partition.roles)
        if isinstance(wanted, str):
            self._wait(partition, ("cannot-be-met", wanted))
            if partition.by_balancer and not partition.pending and self._settings.is_enabled:
                self._set(partition, NO_TARGET, "policy-broken")
            return
        if wanted.refusal:
            self._wait(partition, ("cannot-be-met", wanted.refusal))
        code = need_of(wanted, partition.roles)
        if partition.by_balancer:
            self._look_at_own(partition, wanted, ask, code)
            return
        if partition.is_moving:
            if code:
                self._wait(partition, ("by-hand", "moved by hand meanwhile"))
            return
        self._note_down(partition)
        if code == "policy-broken" and (lacking := wanted.unlabelled(partition.roles)):
            self._wait(partition, ("no-label", lacking))
            return
        is_held = not self._condition.overfull.isdisjoint(partition.roles.all)
        if is_held and code not in _URGENT and not wanted.refusal:
            self._relievable.append(Movable(partition, wanted))
        if not code and self._home(partition, ask) is not None:
            code = "undo"
        if not code:
            if wanted.has_policy and not wanted.refusal:
                self._movable.append(Movable(partition, wanted))
            return
        margin = margin_of(wanted, partition.voters, self._condition.up)
        self._needs.append(_Need(partition, wanted, code, margin))

    def _look_at_own(self, partition: Partition, wanted: Wanted, ask: Ask, code: str) -> None:
        """A move that cannot end blocks no other."""
        wait = hindrance(wanted, partition, self._condition.up)
        wait = wait or self._endless(wanted, partition, partition.wanted)
        if wait is not None:
            self._wait(partition, wait)
        else:
            self.moving_count += 1
            self._urgent_count += code in _URGENT
        # A new controller misses no broker yet: the moves away from one would seem in vain.
        if not partition.pending and self._settings.is_enabled and self._condition.is_sure:
            if code in _URGENT and partition.group not in self._reasons:
                why = self._code_of(wanted, partition, partition.wanted, code)
                self.found_reasons[partition.group] = why
            self._review(partition, wanted, ask, code)

    def _wait(self, partition: Partition, wait: Wait) -> None:
        self.is_short = self.is_short or wait[0] == "disk-full"
        leaving = self._plans.leaving.intersection(partition.hosts)
        self.waits.add(*wait, partition.name, leaving)

    def _note_down(self, partition: Partition) -> None:
        down, held = self._condition.down_since_ms, self._condition.held
        away = [one for one in partition.roles.all if one in down and one not in self._plans.lost]
        for wait in dict.fromkeys(held[one] for one in away if one in held):
            self._wait(partition, wait)
        for broker in away:
            if broker not in held:
                text = f"broker {broker} is down, and taken for lost after "
                text += f"{self._settings.lost_after_ms / 1_000:g} s"
                if broker in self._condition.spared:
                    text = f"broker {broker} is down, and in maintenance"
                self._wait(partition, ("broker-down", text))

    def _review(self, partition: Partition, wanted: Wanted, ask: Ask, code: str) -> None:
        """Whether the balancer still wants its target, while no voters are granted yet."""
        is_right = code not in _URGENT
        reason = self._reason(partition)
        # The balancer takes replicas from a down broker for no other reason.
        was_urgent = reason in _URGENT or (
            reason is None and not self._condition.up.issuperset(partition.removing)
        )
        good = self._is_good(partition, ask)
        if is_right and (was_urgent or not good):
            self._set(partition, NO_TARGET, reason or "policy-broken")
        elif not good:
            found = self._mend(partition, wanted, code)
            if not isinstance(found, Roles):
                self._wait(partition, found)
                self._set(partition, NO_TARGET, code)
            elif not self._is_as_good(partition, wanted, found):
                self._set(partition, found, self._code_of(wanted, partition, found, code))

    def _reason(self, partition: Partition) -> str | None:
        """Why the balancer moves it; None if that is unknown by now."""
        group = partition.group
        return self._reasons.get(group) or self.found_reasons.get(group)

    def _is_good(self, partition: Partition, ask: Ask) -> bool:
        """Whether the target is possible, and would keep the policy."""
        wanted, code = self._plans.of(ask, partition.wanted), self._reason(partition)
        if isinstance(wanted, str) or set(partition.adding) & self._condition.absent:
            return False
        if code == "disk-high" and set(partition.adding) & self._condition.full:
            return False
        if need_of(wanted, partition.wanted) not in _URGENT:
            return True
        is_best_effort = code == "best-effort"
        return is_best_effort and not wanted.lost(partition.wanted)

    def _is_as_good(self, partition: Partition, wanted: Wanted, found: Roles) -> bool:
        """Whether the present target repairs no less than the new one: then its copies go on. If
        not all lost replicas can be replaced, each round finds other targets as good."""
        target = partition.wanted
        if found.is_alike(target):
            return True
        coming = set(partition.adding)
        if coming & self._condition.absent:
            return False
        if coming & self._condition.full and self._have_room(partition, found):
            return False
        if self._endless(wanted, partition, target):
            return False
        lost, found_lost = wanted.lost(target), wanted.lost(found)
        if len(lost) > len(found_lost):
            return False
        if wanted.is_right(found, found_lost):
            return wanted.is_right(target, lost)
        return not wanted.breaks_more(target, than=found)

    def _have_room(self, partition: Partition, found: Roles) -> bool:
        """Whether a copy there would not fill the next disk."""
        coming = set(found.all).difference(partition.roles.all)
        return all(self._room.has_room(one, partition) for one in coming)

    # ---- moving ------------------------------------------------------------------------------

    def _meet(self, need: _Need) -> None:
        partition, wanted = need.partition, need.wanted
        wait = self._wait_of(need)
        if wait is None and need.code == "leaders":
            self._leader_changes += 1
            led = wanted.lead_first(partition.roles, self._led, present=partition.replicas[0])
            self._set(partition, led, need.code)
            return
        if wait is None and need.code == "undo":
            home = self._cluster.returning[partition.group]
            self.moving_count += not home.has_same_members(partition.roles)
            self._set(partition, home, need.code)
            return
        if wait is None and self.moving_count >= self._settings.moves_max:
            wait = self._look_ahead(need)
        elif wait is None:
            found = self._find(need)
            if not isinstance(found, Roles):
                wait = found
                self._vain_count += 1
            else:
                self.moving_count += 1
                self._urgent_count += need.code in _URGENT
                self._set(partition, found, self._code_of(wanted, partition, found, need.code))
        if wait is not None and wait not in self._held(partition).values():  # Noted already.
            self._wait(partition, wait)

    def _look_ahead(self, need: _Need) -> Wait:
        """Why a need is not met now, while as many move as may: that no broker can meet it is
        known before its turn comes."""
        sought = self._sought(need)
        if sought not in self._plans.hopeful:
            if self._ahead_count < AHEAD_MAX:
                self._ahead_count += 1
                found = self._find(need)
                if not isinstance(found, Roles):
                    return found
                self._plans.note_hopeful(sought)
            else:
                self.is_cut = True
        return self._turn

    def _wait_of(self, need: _Need) -> Wait | None:
        """Why a need is not met now, as far as that is known without a search."""
        if not self._settings.is_enabled:
            return "paused", "balancer.enable is false"
        if need.partition.group in self._stopped:
            return "stopped", "its move was stopped by hand"
        if need.code == "leaders":
            is_over = self._leader_changes >= LEADER_CHANGES_MAX
            return ("turn", f"{LEADER_CHANGES_MAX} change leaders") if is_over else None
        if need.code == "policy-dearer" and not self._condition.is_calm:
            return "calm", "other brokers would be better, once all are up"
        if need.code == "policy-dearer" and self._urgent_count:
            return "calm", "other brokers would be better, once nothing urgent moves"
        wait = hindrance(need.wanted, need.partition, self._condition.up)
        if need.code == "undo":
            return wait or (self._turn if self.moving_count >= self._settings.moves_max else None)
        wait = wait or self._plans.hopeless.get(self._sought(need))
        is_turn = self.moving_count < self._settings.moves_max
        if wait is None and is_turn and self._vain_count >= VAIN_MAX:
            self.is_cut = True
            return "turn", "it is looked for in the next round"
        return wait

    def _home(self, partition: Partition, ask: Ask) -> Roles | None:
        """Where it goes back to after a cancelled decommission."""
        if partition.group not in self._cluster.returning:
            return None
        takers = self._takers(partition, "undo")
        return home_of(self._cluster, self._plans, ask, partition, takers)

    def _find(self, need: _Need) -> Roles | Wait:
        """The replicas that repair it; or why there are none, which the round notes."""
        found = self._mend(need.partition, need.wanted, need.code)
        if not isinstance(found, Roles):
            self._plans.note_hopeless(self._sought(need), found)
        return found

    def _endless(self, wanted: Wanted, partition: Partition, target: Roles) -> Wait | None:
        given_up = self._cluster.given_up(partition)
        return endless(wanted, target.voters, self._condition.up, given_up)

    def _sought(self, need: _Need) -> Sought:
        partition = need.partition
        return Sought(
            need.wanted,
            partition.roles,
            takers=self._takers(partition, need.code),
            is_best_effort=self._settings.is_best_effort,
            up=self._condition.up.intersection(partition.roles.all),
            given_up=self._cluster.given_up(partition),
            held=frozenset(self._held(partition)),
        )

    def _held(self, partition: Partition) -> Mapping[BrokerId, Wait]:
        """Those of its brokers that are silent, and held because of an outage: why."""
        condition = self._condition
        away = (one for one in partition.roles.all if one not in condition.up)
        return {one: condition.held[one] for one in away if one in condition.held}

    def _code_of(self, wanted: Wanted, partition: Partition, target: Roles, code: str) -> str:
        """Why it moves; noted if the move breaks the policy."""
        if not self._settings.is_best_effort or not wanted.has_policy:
            return code
        return "best-effort" if wanted.breaks_more(target, than=partition.roles) else code

    def _takers(self, partition: Partition, code: str) -> frozenset[BrokerId]:
        """The brokers that may get a replica of it now. A move that only improves may not fill a
        disk."""
        takers = self._condition.takers
        if code in _URGENT:
            return takers
        return frozenset(
            one
            for one in takers
            if one in partition.roles.all or self._room.has_room(one, partition)
        )

    def _mend(self, partition: Partition, wanted: Wanted, code: str) -> Roles | Wait:
        """The replicas that it should have, if the move can end; or why there are none."""
        condition, replicas = self._condition, partition.roles
        takers = self._takers(partition, code)
        find = partial(
            mend,
            wanted,
            replicas,
            up=condition.up,
            held=self._held(partition),
            loads=self._loads_beside(partition),
            led=self._led,
            best_effort=self._settings.is_best_effort,
        )
        found = find(settled=takers)
        if isinstance(found, Roles):
            return self._endless(wanted, partition, found) or found
        if takers == condition.settled:
            return found
        wider = find(settled=condition.settled)
        if not isinstance(wider, Roles):
            return found
        lacking = sorted(set(wider.all).difference(takers, replicas.all))
        text = f"the disks of brokers {', '.join(map(str, lacking))}, which could take a replica, "
        if condition.full.issuperset(lacking):
            return "disk-full", f"{text}are more than {self._settings.disk_high_percent} % full"
        return "disk-full", f"{text}have no room for it below {self._room.low_percent} %"

    def _loads_beside(self, partition: Partition) -> Mapping[BrokerId, int]:
        """The loads of brokers without this partition's target; a broker that already gets a
        replica of it comes before others, whatever their loads."""
        if not partition.is_moving:
            return self._loads
        loads = self._loads.copy()
        loads.subtract(partition.wanted.all)
        loads.update(partition.roles.all)
        return {**loads, **dict.fromkeys(partition.adding, GOES_FIRST)}

    def _set(self, partition: Partition, target: Roles, code: str) -> None:
        """Request a move, and count its changes."""
        before = partition.wanted if partition.is_moving else partition.roles
        after = target if target.voters else partition.roles
        self._loads.subtract(before.all)
        self._loads.update(after.all)
        self._led[before.voters[0]] -= 1
        self._led[after.voters[0]] += 1
        self._room.move(partition, target)
        command = BalancedReplicas(
            group=partition.group,
            seen_at=self._seen_at,
            version=partition.version,
            replicas=partition.replicas,
            observers=partition.observers,
            target_before=partition.target,
            target_observers_before=partition.target_observers,
            target=target.voters,
            target_observers=target.observers,
        )
        self.moves.append(Move(command, code))

    # ---- full disks --------------------------------------------------------------------------

    def _relieve(self) -> Iterator[None]:
        """Move replicas from disks that are too full; after lost replicas and broken rules."""
        sources = self._condition.overfull.difference(self._plans.lost) & self._plans.brokers.keys()
        if not sources:
            return
        self.is_short = True
        relief = Relief(
            room=self._room,
            plans=self._plans,
            takers=self._condition.takers - self._plans.lost,
            up=self._condition.up,
            led=self._led,
            high_percent=self._settings.disk_high_percent,
            used_percent=self._used_percent,
            left_alone={
                **dict.fromkeys(self._by_hand, ("by-hand", "an operator moved them lately")),
                **dict.fromkeys(self._stopped, ("stopped", "their moves were stopped by hand")),
            },
        )
        held = by_broker(self._relievable)
        for found in relief.steps(sources, self._condition.spared, held):
            if isinstance(found, Stuck):
                if not found.partitions:
                    self.waits.note(*found.wait)
                for partition in found.partitions:
                    self._wait(partition, found.wait)
            elif found is not None and (wait := self._relief_waits(found)):
                self._room.move(found.partition, found.target)
                self._wait(found.partition, wait)
            elif found is not None:
                self.moving_count += 1
                self._set(found.partition, found.target, "disk-high")
            yield
        self.is_cut = self.is_cut or relief.is_cut

    def _relief_waits(self, found: Relieved) -> Wait | None:
        """Why it does not move now."""
        if not self._settings.is_enabled:
            return "paused", f"{found.text}; balancer.enable is false"
        return self._turn if self.moving_count >= self._settings.moves_max else None

    @property
    def _turn(self) -> Wait:
        return "turn", f"{self._settings.moves_max} move, and no more may at the same time"

    # ---- evening out -------------------------------------------------------------------------

    def _even_out(self) -> Iterator[None]:
        if not self._condition.is_calm or self._cluster.moving:
            return
        held = by_broker(self._movable)
        left = EXCHANGES_MAX
        moved: set[GroupId] = set()
        is_moving = True
        settled = self._condition.settled - self._plans.leaving
        while is_moving and self.moving_count < self._settings.moves_max:
            is_moving = False
            for full, empty in uneven_pairs(self._loads, settled):
                if empty in self._condition.full:
                    continue
                for one in held.get(full, ()):
                    if one.partition.group in moved or one.partition.group in self._stopped:
                        continue
                    left -= 1
                    if left < 0:
                        return
                    has_room = self._room.has_room(empty, one.partition)
                    target = exchanged(one, full, empty) if has_room else None
                    yield
                    if target is not None:
                        moved.add(one.partition.group)
                        self.moving_count += 1
                        self._set(one.partition, target, "uneven")
                        is_moving = True
                        break
                if is_moving:
                    break

    def _even_leaders(self) -> Iterator[None]:
        """Even out preferred leaders, if there is no other work."""
        if self.moves or not self._condition.is_calm or self._cluster.moving:
            return
        free = [one for one in self._movable if one.partition.group not in self._stopped]
        for found in evened_leaders(free, self._led, changes_max=LEADER_CHANGES_MAX):
            if found is not None:
                one, leader = found
                order = one.wanted.lead_first(one.partition.roles, {}, present=leader)
                self._set(one.partition, order, "leaders-uneven")
            yield
