"""Runs the balancer's rounds while this broker is the controller.

Why:    a policy is a promise that outlives the day on which its topic was created.
How:    A round finds replicas that are not where policies want them, and has them moved.
            Each second the controller looks at the health of the brokers. If that or the state has
        changed since the last round, the next round begins. A round runs in slices, a tenth of the
        time at most, so that heartbeats, commands and clients come first. It asks for all its moves
        with one command; moves that have become outdated are left out, and another round is due.
Owns:   health, disks, plans, reasons and the findings of the last round: forgotten when another
        broker becomes the controller. Every broker remembers which moves an operator stopped, what
        an operator moved, and which brokers are silent (`broker_last_seen`).
Source: decision 0010."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from strandline.base.clock import Clock
from strandline.base.errors import ApiError
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.coordinators.topic_configs import TopicConfigs
from strandline.broker.operations.broker_last_seen import BrokerLastSeen
from strandline.broker.operations.outages import OutageWatch
from strandline.broker.operations.single_flight import SingleFlight
from strandline.broker.operations.ticker import Ticker
from strandline.controller.balancer.disks import Disks
from strandline.controller.balancer.fullness import Fullness
from strandline.controller.balancer.health import Condition, Health
from strandline.controller.balancer.plans import Plans
from strandline.controller.balancer.reasons import Waits
from strandline.controller.balancer.round import Move, Round, Settings
from strandline.controller.commands import BalanceNoted, BalanceReplicas, Refused
from strandline.controller.decision import leaving_of, maintained_of
from strandline.controller.outage_commands import NoteLastSeen
from strandline.controller.records import ConfigsChanged, ReassignmentSet, Record, VotersStable
from strandline.controller.reports import Question
from strandline.model.cluster import Roles
from strandline.model.ids import BrokerId, GroupId

LOOK_INTERVAL_MS = 1_000
SLICE_MS = 10
PAUSE_MS = 10
"""Between two slices."""
BUSY_RATIO = 10
"""The next round begins after so many times the duration of the last one."""
ASK_TIMEOUT_MS = 5_000
FIRST_ROOM_MS = 5_000
ROOM_INTERVAL_MS = 10_000
"""How often brokers report how full their disks are and how large their logs. The first time is
before any broker has been up for long enough to be given replicas."""

_log = logging.getLogger("strandline.controller")


@dataclass(slots=True)
class Findings:
    """What the balancer of the active controller knows."""

    settings: Settings
    condition: Condition = field(default_factory=Condition)
    reasons: dict[GroupId, str] = field(default_factory=dict)
    """{group: why the balancer moves it}, for moves that this controller has begun."""
    waits: Waits = field(default_factory=Waits)
    begun: Counter[str] = field(default_factory=Counter)
    """{code: moves begun since this broker became the controller}"""
    round_count: int = 0
    used_percent: Mapping[BrokerId, int] = field(default_factory=dict)
    """{broker: how full its disk was last}"""
    sizes: Mapping[GroupId, int] = field(default_factory=dict)
    """{group: bytes of its log}, as the last round knew it"""


class Balancing:
    """See the module."""

    def __init__(
        self, *, clock: Clock, controller: ControllerHost, topic_configs: TopicConfigs
    ) -> None:
        self._clock = clock
        self._controller = controller
        self._health = Health()
        self._fullness = Fullness()
        self._disks = Disks()
        self._room_due_ms = 0
        self._findings: Findings | None = None
        self._plans: Plans | None = None
        self._round: tuple[Round, Iterator[None]] | None = None
        self._round_began_ms = 0
        self._next_ms = 0
        # What the last round went by: the version of the state, and the health of the brokers.
        self._seen: tuple[int, Condition] | None = None
        # Groups that the balancer moves, whichever broker was the controller then.
        self._own: set[GroupId] = set()
        # {group whose move an operator stopped: until when it is left alone}
        self._stopped: dict[GroupId, int] = {}
        # {group that an operator moves, or moved: until when it does not leave a full disk}
        self._by_hand: dict[GroupId, int] = {}
        self._is_short = False
        """Whether the last round found too little room: then new reports call for another round."""
        self._ticker = Ticker(
            clock,
            self._look,
            interval_ms=LOOK_INTERVAL_MS,
            log=_log,
            failure="cannot check the placement of replicas",
        )
        self._asking, self._asking_room, self._noting = (
            SingleFlight(),
            SingleFlight(),
            SingleFlight(),
        )
        self.last_seen = BrokerLastSeen(clock=clock, controller=controller)
        self.outages = OutageWatch(
            clock=clock,
            controller=controller,
            topic_configs=topic_configs,
        )
        controller.on_applied.append(self._on_applied)
        controller.on_adopted.append(self._on_adopted)

    def start(self) -> None:
        """Begin to look."""
        self._ticker.start()

    def stop(self) -> None:
        """End it."""
        self._ticker.stop()
        self._asking.stop()
        self._asking_room.stop()
        self._noting.stop()
        self.outages.stop()

    @property
    def findings(self) -> Findings | None:
        """The findings; None if this broker is not the controller."""
        return self._findings if self._controller.is_active else None

    # ---- looking -----------------------------------------------------------------------------

    def _look(self) -> None:
        try:
            self._tick()
        except Exception:  # The next look starts from nothing.
            self._plans = self._round = self._seen = None
            raise

    def _forget(self) -> None:
        self._health, self._fullness, self._disks = Health(), Fullness(), Disks()
        self._room_due_ms = 0
        self._controller.reporting.latest.clear()
        self.outages.forget()
        self._findings = self._plans = self._round = self._seen = None

    def _tick(self) -> None:
        self.last_seen.look()
        if not self._controller.is_here and self._findings is not None:
            self._forget()
        if not self._controller.is_active:
            return  # Without a lease for a moment: it still remembers which brokers are down.
        now = self._clock.monotonic_ms()
        cluster = self._controller.cluster
        settings = Settings.of(cluster.cluster_configs)
        if self._findings is None:
            self._findings = Findings(settings)
        findings = self._findings
        findings.settings = settings
        findings.condition = self._health.step(
            now,
            brokers=cluster.brokers,
            alive=self._controller.alive(),
            lost_after_ms=settings.lost_after_ms,
            spared=maintained_of(cluster),
            silent_ms=self.last_seen.known_ms,
        )
        self._note_silences(findings)
        silent_since_ms = self.last_seen.silent_since_ms(findings.condition)
        findings.condition = self.outages.look(findings.condition, silent_since_ms)
        self._look_for_room(now)
        self._note_full(now, settings)
        findings.condition = replace(
            findings.condition, full=self._fullness.full, overfull=self._fullness.overfull
        )
        findings.used_percent = self._fullness.used_percent
        for remembered in (self._stopped, self._by_hand):
            for group in [one for one, until_ms in remembered.items() if now >= until_ms]:
                del remembered[group]
                self._seen = None
        is_idle = self._round is None and not self._asking.is_under_way and now >= self._next_ms
        if is_idle and self._seen != (cluster.version, findings.condition):
            self._begin(findings, now)

    def _note_silences(self, findings: Findings) -> None:
        """Record which brokers are silent, for later controllers."""
        notes = self.last_seen.notes(findings.condition, findings.settings.lost_after_ms)
        if notes is not None and not self._noting.is_under_way:
            self._noting.begin(partial(self._note, notes))

    async def _note(self, notes: NoteLastSeen) -> None:
        answer = await self._controller.execute(notes)
        if isinstance(answer, Refused):
            _log.info("cannot record which brokers are silent: %s", answer.message)

    def _look_for_room(self, now: int) -> None:
        """Ask the brokers periodically how full their disks are."""
        if not self._room_due_ms:
            self._room_due_ms = now + FIRST_ROOM_MS
        if now < self._room_due_ms or self._asking_room.is_under_way:
            return
        self._room_due_ms = now + ROOM_INTERVAL_MS
        self._asking_room.begin(self._ask_room)

    async def _ask_room(self) -> None:
        disks, asked_ms = self._disks, self._clock.monotonic_ms()
        reporting = self._controller.reporting
        disks.hear(
            await reporting.ask(self._controller.alive(), Question(sizes=True)), asked_ms=asked_ms
        )
        if self._is_short:
            self._seen = None

    def _note_full(self, now: int, settings: Settings) -> None:
        """Notice full disks in the latest reports, whatever these were asked for."""
        before = self._fullness.full
        self._fullness.step(
            now,
            self._controller.reporting.latest,
            high_percent=settings.disk_high_percent,
            low_percent=settings.disk_low_percent,
        )
        for broker in sorted(self._fullness.full - before):
            used = self._fullness.used_percent[broker]
            _log.warning(
                "the disk of broker %d is %d %% full: it is given no more replicas",
                broker,
                used,
            )

    def _begin(self, findings: Findings, now: int) -> None:
        cluster, condition = self._controller.cluster, findings.condition
        self._seen = cluster.version, condition
        plans, leaving = self._plans, leaving_of(cluster)
        if plans is None or not plans.are_for(cluster.brokers.values(), condition.lost, leaving):
            plans = self._plans = Plans(cluster.brokers.values(), condition.lost, leaving)
        for group in list(findings.reasons):
            if group not in cluster.moving:
                del findings.reasons[group]
        room = self._disks.room(now, low_percent=findings.settings.disk_low_percent)
        one = Round(
            cluster,
            condition,
            plans,
            settings=findings.settings,
            reasons=findings.reasons,
            stopped=self._stopped,
            by_hand=self._by_hand,
            room=room,
            used_percent=dict(findings.used_percent),
        )
        self._round = one, one.steps()
        self._round_began_ms = now
        self._work()

    def _work(self) -> None:
        """Continue the round for a slice."""
        if self._round is None or not self._ticker.is_running:
            return
        one, steps = self._round
        end_ms = self._clock.monotonic_ms() + SLICE_MS
        try:
            for _ in steps:
                if self._clock.monotonic_ms() >= end_ms:
                    self._clock.call_later(PAUSE_MS, self._work)
                    return
        except Exception:  # A task boundary: the next look tries again.
            _log.exception("cannot work out which replicas should move")
            self._plans = self._round = self._seen = None
            return
        self._round = None
        now = self._clock.monotonic_ms()
        self._next_ms = now + BUSY_RATIO * (now - self._round_began_ms)
        findings = self.findings
        if findings is None:
            return
        if one.is_cut:
            self._seen = None
        self._is_short = one.is_short
        findings.waits, findings.sizes = one.waits, one.sizes
        findings.reasons.update(one.found_reasons)
        findings.round_count += 1
        if one.moves:
            self._asking.begin(partial(self._ask, findings, one.moves))

    # ---- moving ------------------------------------------------------------------------------

    async def _ask(self, findings: Findings, moves: list[Move]) -> None:
        """Have the controller record these moves."""
        try:
            command = BalanceReplicas(tuple(move.command for move in moves))
            answer = await self._controller.submit(command, timeout_ms=ASK_TIMEOUT_MS)
            done = answer.groups if isinstance(answer, BalanceNoted) else ()
            groups = self._controller.cluster.groups
            for move in moves:
                group, target = move.command.group, move.command.target
                observers = move.command.target_observers
                if group not in done or group not in groups:
                    continue
                name, brokers = groups[group].name, ", ".join(map(str, target))
                if target:
                    findings.begun[move.code] += 1
                    findings.reasons[group] = move.code
                before = Roles(move.command.replicas, move.command.observers)
                if observers:
                    brokers += f" and observers {', '.join(map(str, observers))}"
                if target and Roles(target, observers).is_alike(before):
                    _log.info("%s should be led by broker %d: %s", name, target[0], move.code)
                elif target:
                    _log.info("%s moves to brokers %s: %s", name, brokers, move.code)
                else:
                    _log.info(
                        "%s stays where it is: its move is not needed any more",
                        name,
                    )
        except ApiError as error:
            _log.info("cannot record the moves, trying again: %s", error)
            self._seen = None

    def _on_applied(self, record: Record) -> None:
        """Notice moves that an operator stops or orders, and changes of configuration that end
        that."""
        now = self._clock.monotonic_ms()
        if isinstance(record, ConfigsChanged):
            if record.values:
                self._stopped.clear()
                self._by_hand.clear()
        elif isinstance(record, VotersStable):
            if not self._controller.cluster.groups[record.group].by_balancer:
                self._own.discard(record.group)
            if record.group in self._by_hand:
                self._by_hand[record.group] = now + self._patience_ms
            if self._findings is not None:
                self._disks.note_change(record.group, now)
        elif isinstance(record, ReassignmentSet):
            group, cluster = record.group, self._controller.cluster
            present = cluster.groups[group].roles
            is_stop = not record.target or Roles(record.target, record.observers).is_alike(present)
            if is_stop and group in self._own and not record.by_balancer:
                self._stopped[group] = now + self._patience_ms
            if record.by_balancer:
                self._by_hand.pop(group, None)
            elif not is_stop:
                self._by_hand[group] = now + self._patience_ms
            if record.by_balancer and not is_stop:
                self._own.add(group)
            else:
                self._own.discard(group)

    @property
    def _patience_ms(self) -> int:
        """For how long the balancer leaves an operator's change as it is."""
        return Settings.of(self._controller.cluster.cluster_configs).lost_after_ms

    def _on_adopted(self, _: dict[str, UUID]) -> None:
        """An operator's stops and orders before a snapshot are unknown, as after a start."""
        groups = self._controller.cluster.groups
        self._stopped.clear()
        self._by_hand.clear()
        self._own = {one for one in self._controller.cluster.moving if groups[one].by_balancer}
        self._seen = None
