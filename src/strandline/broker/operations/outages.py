"""Watches for outages while this broker is the controller, and has repair held meanwhile.

Why:    a judgement rests on which brokers the others hear, and on the controller's log: one place
        has to fetch both and keep them.
How:    Each look of the balancer gives `controller.outages` the health of the brokers, which
        brokers each one hears, and the recorded outages. It returns which repair is held, and which
        outages have begun or ended. Brokers report whom they hear every 10 s, and every 2 s while a
        broker is not heard by all. Outages are recorded in the log for later controllers.
            It raises alarms for partitions with fewer voters, with observers among the voters, or
        without a leader, too (`controller.outages.voting`): from the log and from reports. And for
        buckets and time-outs that brokers' files should agree about, from reports.
Owns:   the judgement, the reports, the alarms raised: forgotten when another broker becomes the
        controller. On every broker: since when zones are back, by its own clock. Everything else is
        in the log.
Source: design section 8; decision 0018."""

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol
from uuid import UUID

from strandline.base.clock import Clock
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.coordinators.topic_configs import TopicConfigs
from strandline.broker.operations.single_flight import SingleFlight
from strandline.config.cluster import ClusterConfig
from strandline.controller.balancer.health import NO_SILENCE, Condition
from strandline.controller.commands import Refused
from strandline.controller.decision import leaving_of
from strandline.controller.outage_commands import DomainNote, NoteOutages
from strandline.controller.outages.alarms import Alarm, Alarms
from strandline.controller.outages.bucket_lists import bucket_faults
from strandline.controller.outages.election_timeouts import timeout_faults
from strandline.controller.outages.fault_alarms import FaultAlarms
from strandline.controller.outages.happenings import Happening, Kind
from strandline.controller.outages.judging import Judgement, Outages, Rules, Scene
from strandline.controller.outages.leaderless import Leaderless
from strandline.controller.outages.marks import configured
from strandline.controller.outages.too_few import TooFew
from strandline.controller.outages.voting import TieredLags, VotingAlarms
from strandline.controller.records import ConfigsChanged, Record
from strandline.controller.reports import Question, Report
from strandline.model.cluster import Domain, Outage, Partition
from strandline.model.ids import BrokerId, GroupId

ASK_INTERVAL_MS = 10_000
ASK_SOON_MS = 2_000
"""How often brokers report which brokers they hear and which partitions have no leader: usually,
and while a broker is not heard by all or a partition was reported."""
VALID_MS = 15_000
"""For how long a report counts."""

_log = logging.getLogger("strandline.controller")


class Poster(Protocol):
    """Posts alarms to another system; never waits and never raises."""

    def aim(self, url: str) -> None:
        """Set where to post; empty: post nowhere and drop what waits."""

    def post(self, about: str, body: bytes) -> None:
        """Post JSON, in the place of what waits about the same subject."""


class OutageWatch:
    """See the module. `poster`: None if alarms are not posted."""

    def __init__(
        self, *, clock: Clock, controller: ControllerHost, topic_configs: TopicConfigs
    ) -> None:
        self.poster: Poster | None = None
        self._clock = clock
        self._controller = controller
        self._topic_configs = topic_configs
        self._asking, self._noting = SingleFlight(), SingleFlight()
        # By the log, as replayed here: domains that are down, and {domain: since when it is
        # back}.
        self._are_down: frozenset[Domain] = frozenset()
        self._back_ms: dict[Domain, int] = {}
        controller.on_applied.append(self._on_applied)
        controller.on_adopted.append(self._on_adopted)
        self.forget()

    def forget(self) -> None:
        """Another broker is the controller: that one posts alarms."""
        if self.poster is not None:
            self.poster.aim("")
        self.judgement = Judgement()
        self._outages, self._alarms = Outages(), Alarms()
        self.voting = VotingAlarms()
        self.bucket_lists = FaultAlarms(
            Kind.TIERED_BUCKETS, noun="bucket", over="all brokers use it"
        )
        self.settings = FaultAlarms(
            Kind.SETTINGS, noun="setting", over="leases hold with the values of all brokers"
        )
        # {broker that reported: (when, which brokers it hears)}
        self._hears_of: dict[BrokerId, tuple[int, frozenset[BrokerId]]] = {}
        # {broker that reported: (when, the groups that it leads and refuses acks=all for)}
        self._refusing: dict[BrokerId, tuple[int, tuple[GroupId, ...]]] = {}
        # {broker that reported: (when, its report)}, for what it says of tiered storage and of
        # its file
        self._reports: dict[BrokerId, tuple[int, Report]] = {}
        self._leaderless, self._too_few = Leaderless(VALID_MS), TooFew()
        self._asked_ms: int | None = None
        # (version of the cluster, the brokers that have or get a replica then)
        self._hosting: tuple[int, frozenset[BrokerId]] | None = None

    @property
    def fault_happenings(self) -> list[Happening]:
        """The reported alarms about what brokers' files have in common."""
        return [*self.bucket_lists.happenings, *self.settings.happenings]

    def stop(self) -> None:
        """Ask no broker any more."""
        self._asking.stop()
        self._noting.stop()

    def look(
        self, condition: Condition, silent_since_ms: Mapping[BrokerId, int] = NO_SILENCE
    ) -> Condition:
        """The health of the brokers, adjusted for outages; called each second. `silent_since_ms`:
        see `Scene`."""
        now, cluster = self._clock.monotonic_ms(), self._controller.cluster
        config = ClusterConfig.from_values(cluster.cluster_configs)
        scene = Scene(
            controller=self._controller.self_id,
            now_ms=now,
            wall_ms=self._clock.wall_ms(),
            brokers={one.id: one.labels for one in cluster.brokers.values()},
            condition=condition,
            hears=self._hears(now, condition),
            leaving=leaving_of(cluster),
            idle=self._idle(condition),
            outages=cluster.outages,
            back_ms=self._back_ms,
            silent_since_ms=silent_since_ms,
        )
        rules = Rules(
            lost_after_ms=config.broker_lost_after_ms,
            hold_max_ms=config.outage_hold_max_ms,
            marks_of=configured(config),
        )
        found = self.judgement = self._outages.step(scene, rules)
        if self.poster is not None:
            self.poster.aim(config.alarm_webhook_url)
        for alarm in (
            *self._alarms.step(found, scene, cluster.silent_ms),
            *self.voting.step(
                now,
                cluster.groups,
                refusing=self._refused(now, found.unheard),
                leaderless=self._leaderless.found(
                    now, cluster.groups, version=cluster.version, silent=found.silent
                ),
                **self._late(now),
            ),
            *self.bucket_lists.step(now, self._bucket_faults(now)),
            *self.settings.step(now, self._timeout_faults(now)),
        ):
            self._raise(alarm)
        self._note(found)
        is_urgent = bool(condition.down_since_ms) or found.has_cut
        self._ask(now, is_urgent=is_urgent or self._leaderless.is_suspected)
        lost = (condition.lost | found.lost) - found.held.keys()
        return replace(condition, lost=lost, held=found.held)

    def _on_applied(self, record: Record) -> None:
        """On every broker: the next controller has to know since when zones are back."""
        if isinstance(record, ConfigsChanged) and record.outages:
            self._note_back()

    def _on_adopted(self, _: dict[str, UUID]) -> None:
        self._note_back()

    def _note_back(self) -> None:
        outages = self._controller.cluster.outages
        now, before = self._clock.monotonic_ms(), self._are_down
        self._are_down = frozenset(one for one, outage in outages.items() if outage.is_down)
        self._back_ms.update(dict.fromkeys(before - self._are_down, now))
        for domain in self._are_down:
            self._back_ms.pop(domain, None)

    def _idle(self, condition: Condition) -> frozenset[BrokerId]:
        """Lost brokers that have no replica and get none."""
        lost = condition.lost & condition.down_since_ms.keys()
        cluster = self._controller.cluster
        if not lost:
            return frozenset()
        if self._hosting is None or self._hosting[0] != cluster.version:
            hosts = frozenset(one for group in cluster.groups.values() for one in group.hosts)
            self._hosting = cluster.version, hosts
        return lost - self._hosting[1]

    def _hears(self, now: int, condition: Condition) -> dict[BrokerId, frozenset[BrokerId]]:
        """{broker that is heard here: which brokers it hears}, by recent reports; and for this
        broker. A report from before a broker fell silent does not count for that broker."""
        alive = frozenset(self._controller.alive())
        hears = {
            one: heard.difference(
                other for other, down_ms in condition.down_since_ms.items() if down_ms > at_ms
            )
            for one, (at_ms, heard) in self._hears_of.items()
            if one in alive and now - at_ms < VALID_MS
        }
        hears[self._controller.self_id] = alive
        return hears

    def _refused(self, now: int, unheard: frozenset[BrokerId]) -> frozenset[GroupId]:
        """Partitions that refuse acks=all: reported by their leader, or because no broker hears
        enough of their voters."""
        reports = self._refusing.values()
        cluster = self._controller.cluster
        too_few = self._too_few.found(
            cluster.groups,
            version=cluster.version,
            silent=unheard,
            min_insync_of=self._min_insync_of,
        )
        return too_few.union(*(some for at_ms, some in reports if now - at_ms < VALID_MS))

    def _late(self, now: int) -> TieredLags:
        """What leaders report of tiered storage; and when the first disk, of those that such a
        partition has a replica on, or the first limit is full."""
        reports = {
            broker: one for broker, (at_ms, one) in self._reports.items() if now - at_ms < VALID_MS
        }
        lagging = frozenset(group for one in reports.values() for group in one.lagging)
        groups = self._controller.cluster.groups
        hosts = {host for one in lagging if one in groups for host in groups[one].hosts}
        times = [one.full_in_ms for broker, one in reports.items() if broker in hosts]
        return TieredLags(
            lagging=lagging,
            full=frozenset(group for one in reports.values() for group in one.full),
            full_in_ms=min((one for one in times if one >= 0), default=None),
        )

    def _bucket_faults(self, now: int) -> dict[str, str]:
        """{bucket: what is wrong with it}, by recent reports of registered brokers."""
        known = self._controller.cluster.brokers
        return bucket_faults(
            {
                broker: one.buckets
                for broker, (at_ms, one) in self._reports.items()
                if broker in known and now - at_ms < VALID_MS and one.buckets is not None
            }
        )

    def _timeout_faults(self, now: int) -> dict[str, str]:
        """{key: what is wrong with it}, by recent reports of registered brokers."""
        known = self._controller.cluster.brokers
        return timeout_faults(
            {
                broker: one.election_timeout_ms
                for broker, (at_ms, one) in self._reports.items()
                if broker in known and now - at_ms < VALID_MS and one.election_timeout_ms
            }
        )

    def _min_insync_of(self, partition: Partition) -> int:
        cluster = self._controller.cluster
        topic = cluster.topics[partition.topic]
        return self._topic_configs.of(topic, cluster).min_insync_replicas

    def _raise(self, alarm: Alarm) -> None:
        if not alarm.is_posted_only:
            level = logging.INFO if alarm.is_over else logging.WARNING
            _log.log(level, "%s: %s", alarm.kind, alarm.text)
        if self.poster is not None:
            body = {
                "cluster": self._controller.cluster.cluster_id,
                "class": alarm.kind,
                "subject": alarm.subject,
                "state": "over" if alarm.is_over else "begun",
                "text": alarm.text,
                "at_ms": self._clock.wall_ms(),
                "controller": self._controller.self_id,
            }
            self.poster.post(f"{alarm.kind} {alarm.subject}", json.dumps(body).encode())

    # ---- asking and noting -----------------------------------------------------------------------

    def _ask(self, now: int, *, is_urgent: bool) -> None:
        interval_ms = ASK_SOON_MS if is_urgent else ASK_INTERVAL_MS
        is_due = self._asked_ms is None or now - self._asked_ms >= interval_ms
        if is_due and not self._asking.is_under_way:
            self._asked_ms = now
            self._asking.begin(self._ask_all)

    async def _ask_all(self) -> None:
        hears, refusing, leaderless = self._hears_of, self._refusing, self._leaderless
        question = Question(hears=True, refuses=True)
        answers = await self._controller.reporting.ask(self._controller.alive(), question)
        now = self._clock.monotonic_ms()
        for broker, report in answers.items():
            if report.hears is not None:
                hears[broker] = now, frozenset(report.hears)
            refusing[broker] = now, report.refusing
            self._reports[broker] = now, report
            leaderless.note(broker, now, report.leaderless)

    def _note(self, found: Judgement) -> None:
        if not found.wanted or self._noting.is_under_way:
            return
        known = self._controller.cluster.outages
        notes = tuple(
            DomainNote(domain, known.get(domain, Outage()), after)
            for domain, after in found.wanted.items()
        )
        self._noting.begin(partial(self._have_noted, NoteOutages(notes)))

    async def _have_noted(self, command: NoteOutages) -> None:
        answer = await self._controller.execute(command)
        if isinstance(answer, Refused):
            _log.info("cannot record which zones and regions are down: %s", answer.message)
