"""The simulated brokers: their hosts, the links between them, and all that is known from outside.

Why:    clients, faults and verdicts act on the same machines; they need these, and not the run.
How:    makes hosts and links from the scenario, boots the program under test on each host, and
        starts a host again that is to come back. Facts go to the checker.
Owns:   the hosts, the links, virtual time, and the marks that faults and operators leave
        (`kept_down`, `labels`, `rotten_journals`, `begun_kinds`).
Source: design section 10; design section 3 ("only two places put a broker together")."""

import contextlib
import random
from collections.abc import Iterator, Sequence
from functools import partial
from uuid import UUID

from strandline.base.errors import StorageError
from strandline.model.cluster import Labels, StoredLabels
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.replica.replica import Replica
from strandline.simulation.buckets.audit import TierAudit
from strandline.simulation.buckets.buckets import SimBuckets
from strandline.simulation.buckets.watch import BucketWatch
from strandline.simulation.clients.connections import ConnectedClient
from strandline.simulation.clients.values import Values
from strandline.simulation.disk.log_starts import report_log_start
from strandline.simulation.faults.disk_losses import DiskLosses
from strandline.simulation.faults.disturbances import Disturbances
from strandline.simulation.invariants.audit import audit
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.invariants.facts import LogAudited
from strandline.simulation.network.link import Link
from strandline.simulation.network.network import SimFabric
from strandline.simulation.network.traffic_recorder import TrafficRecorder
from strandline.simulation.scenarios.scenario import GroupPlan, Scenario
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.host import Seams, SimHost
from strandline.simulation.world.member import GroupMember, Member
from strandline.simulation.world.scheduler import US_PER_MS, Scheduler
from strandline.simulation.world.trace import Trace


class SimCluster:
    """See the module."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.scheduler = Scheduler()
        self.trace = Trace(self.scheduler)
        self.rng = random.Random(f"world {scenario.seed}")
        self.values = Values()
        self.checker = self._make_checker()
        self.buckets = SimBuckets.of(scenario.bucket_regions, self.scheduler, scenario.seed)
        self.tier_audit = TierAudit(
            self.buckets,
            self.replicas,
            self.values,
            self.checker,
            wall_ms=lambda broker: self.hosts[broker].clock.wall_ms(),
        )
        self.bucket_watch = BucketWatch(
            self.buckets, self.tier_audit, self.checker, group_of=self._group_of
        )
        self.fabric = SimFabric(
            self.scheduler, random.Random(self.rng.getrandbits(64)), self._make_link
        )
        homes = {plan.group: {*plan.voters, *plan.observers} for plan in scenario.groups}
        self.traffic = self.fabric.recorder = TrafficRecorder(
            self.checker, self.scheduler, homes=homes
        )
        self.hosts: dict[BrokerId, SimHost[Member]] = {
            broker: self._make_host(broker) for broker in scenario.brokers
        }
        self.clients: Sequence[ConnectedClient] = ()
        """Everything that asks brokers; set by the load."""
        self.start_count = 0
        self.restarts_the_dead = True
        """Whether a process that ends is started again at once; not while faults strike."""
        self.kept_down: set[BrokerId] = set()
        """Brokers that may not be started now: an operator sees to that."""
        self.labels = dict(zip(scenario.brokers, scenario.regions, strict=True))
        """{broker: the region that its configuration says}; an operator may change it."""
        self.rotten_journals: set[tuple[BrokerId, int]] = set()
        """(broker, number of its disk): no process may start with the journal there."""
        self.begun_kinds: set[str] = set()
        """The kinds of faults that were tried."""
        self.disturbances = Disturbances(self.hosts, self.scheduler, self.checker)
        self.disk_losses = DiskLosses(
            scenario, self.hosts, self.checker, begun_kinds=self.begun_kinds
        )
        self._plans = {plan.group: plan for plan in scenario.groups}
        self._topic_ids: dict[UUID, GroupId] = {}
        self._restarts: set[BrokerId] = set()
        self._cluster_ids: dict[tuple[BrokerId, int], str] = {}
        """{(broker, number of its disk): the cluster that it has joined with it}."""
        self._kept_labels: dict[tuple[BrokerId, int], StoredLabels] = {}
        """{the same: what it keeps of the broker's labels}"""

    # ---- what is there -------------------------------------------------------------------------

    @property
    def cluster_id(self) -> str:
        """The cluster's id, once some broker has joined."""
        return next(filter(None, self._cluster_ids.values()), "")

    def topic_ids(self) -> dict[UUID, GroupId]:
        """{id of a topic: the scenario's group that it stands for}, once they were created."""
        wanted = {plan.name: plan.group for plan in self.scenario.groups}
        for host in self.hosts.values():
            member = host.program
            known = member.made.controller.cluster if isinstance(member, BrokerMember) else None
            if len(self._topic_ids) < len(wanted) and known is not None:
                self._topic_ids |= {
                    topic.id: wanted[name] for name, topic in known.topics.items() if name in wanted
                }
        return self._topic_ids

    def _group_of(self, topic_id: str) -> GroupId | None:
        """The group of a topic's id."""
        return self.topic_ids().get(UUID(topic_id))

    def plan(self, group: GroupId) -> GroupPlan:
        """The plan of a group."""
        return self._plans[group]

    def has_plan(self, group: GroupId) -> bool:
        """Whether a group is the scenario's own, and not the brokers'."""
        return group in self._plans

    def replicas(self) -> list[Replica]:
        """Every replica of every living process that has not failed."""
        return [
            replica
            for host in self.hosts.values()
            if host.program is not None
            for replica in host.program.replicas
        ]

    def leading_replicas(self, rng: random.Random | None = None) -> list[Replica]:
        """The replicas that act as leaders, in random order if `rng` is given."""
        leading = [replica for replica in self.replicas() if replica.is_leader]
        return leading if rng is None else rng.sample(leading, len(leading))

    def leading_brokers(self) -> list[BrokerId]:
        """Brokers that lead something, each once."""
        return list(dict.fromkeys(replica.self_id for replica in self.leading_replicas()))

    @property
    def is_over(self) -> bool:
        """Whether something was violated."""
        return self.checker.violation is not None

    def _logs_of(self, group: GroupId) -> Iterator[LogAudited]:
        """What can be read of a group's logs at this moment."""
        for replica in self.replicas():
            if replica.group == group:
                with contextlib.suppress(StorageError, ValueError):
                    yield audit(replica, self.values, is_final=False)

    # ---- time ----------------------------------------------------------------------------------

    def advance(self, duration_ms: int) -> None:
        """Let time go by, until something is violated."""
        self.scheduler.run_until(self.scheduler.now_us + duration_ms * US_PER_MS)

    def _stop(self) -> None:
        self.scheduler.is_stopped = True

    # ---- processes start and end ---------------------------------------------------------------

    def start_brokers(self) -> None:
        """Boot every host, not all at once."""
        for broker in self.scenario.brokers:
            delay_ms = self.rng.randint(0, self.scenario.start_spread_ms)
            self.scheduler.after(delay_ms * US_PER_MS, partial(self._start, broker))

    def restart(self, broker: BrokerId) -> None:
        """Start a host that is down, soon."""
        if self.hosts[broker].is_up or broker in self._restarts:
            return
        self._restarts.add(broker)
        delay_ms = self.rng.randint(*self.scenario.restart_delay_ms)
        self.scheduler.after(delay_ms * US_PER_MS, lambda: self._start(broker))

    def restart_the_failed(self) -> None:
        """Start every host that is down; restart those whose program or replicas have failed."""
        for broker, host in self.hosts.items():
            if host.is_up and host.program is None:
                host.kill()
            elif host.program is not None and _has_failed(host.program):
                self.trace.add(host.name, "has failed replicas and is started anew")
                host.fail_power()
            self.restart(broker)

    def shut_down(self) -> None:
        """End every process, for good."""
        for host in self.hosts.values():
            host.on_down = None
            host.kill()

    def _start(self, broker: BrokerId) -> None:
        self._restarts.discard(broker)
        if broker in self.kept_down:
            self.restart(broker)
            return
        host = self.hosts[broker]
        if not host.is_up:
            self.start_count += 1
            host.start()
            self.disturbances.report()
            if host.program is not None and (broker, host.disk_number) in self.rotten_journals:
                self.checker.fail(f"NoDamageServed: broker {broker} starts with a rotten journal")

    def _on_ended(self, broker: BrokerId, life: int, reason: str) -> None:
        """A broker gave up: its process ends, and its supervisor starts another one."""
        self.trace.add(f"broker {broker}", f"gives up: {reason}")

        def end() -> None:
            host = self.hosts[broker]
            if host.is_up and host.start_count == life:
                host.kill()
            self.restart(broker)

        self.scheduler.after(0, end)

    def _on_down(self, broker: BrokerId) -> None:
        """A process may die in the middle of an operation; no fault restarts it then."""
        self.disturbances.report()
        errors = self.hosts[broker].loop_errors
        if errors:
            self.checker.fail(f"NoUnexpectedError: broker {broker}: {errors[0]}")
        if self.restarts_the_dead:
            self.restart(broker)

    # ---- the parts -----------------------------------------------------------------------------

    def _make_checker(self) -> Checker:
        scenario = self.scenario
        checker = Checker(
            idempotent_producers=[p.name for p in scenario.producers if p.is_idempotent],
            power_fails=scenario.power_fails,
            has_leader_acks=any(plan.acks != -1 for plan in scenario.producers),
            is_cached=scenario.log.write_caching,
            resend_timeout_ms=scenario.settings.resend_timeout_ms,
            regions=dict(zip(scenario.brokers, scenario.regions, strict=True)),
            key_count=scenario.key_count,
            is_tiered=bool(scenario.bucket_regions),
            logs_of=self._logs_of,
        )
        checker.on_violation = self._stop
        return checker

    def _make_host(self, broker: BrokerId) -> SimHost[Member]:
        host: SimHost[Member] = SimHost(
            broker,
            fabric=self.fabric,
            trace=self.trace,
            rng=random.Random(self.rng.getrandbits(64)),
            drift_ppm=self.scenario.drift_ppm[broker - 1],
            flush_us=self.scenario.flush_us,
            disk_bytes=self.scenario.disk_bytes,
            boot=lambda seams: self._boot(broker, seams),
            on_created=lambda path: report_log_start(
                path,
                self.hosts[broker],
                self.scenario,
                self.checker,
                hosts=self.hosts.values(),
                on_cut=self.tier_audit.on_cut if self.scenario.bucket_regions else None,
            ),
        )
        host.on_down = lambda: self._on_down(broker)
        return host

    def _make_link(self, source: BrokerId, target: BrokerId) -> Link:
        scenario = self.scenario
        one_way_us = scenario.one_way_us[scenario.region_of(source), scenario.region_of(target)]
        return Link(
            latency_us=one_way_us,
            jitter_us=int(one_way_us * scenario.jitter_ratio),
            bytes_per_ms=scenario.bytes_per_ms,
            loss_ratio=scenario.loss_ratio,
        )

    def _boot(self, broker: BrokerId, seams: Seams) -> Member:
        host = self.hosts[broker]
        if not self.scenario.has_brokers:
            return GroupMember(
                broker,
                seams,
                life=host.start_count,
                has_lost_disk=host.disk_number > 1,
                scenario=self.scenario,
                checker=self.checker,
                trace=self.trace,
            )
        identity = broker, host.disk_number
        return BrokerMember(
            broker,
            seams,
            life=host.start_count,
            disk_number=host.disk_number,
            labels=self._labels_of(broker),
            kept_labels=self._kept_labels.get(identity),
            on_labelled=lambda kept: self._kept_labels.__setitem__(identity, kept),
            cluster_id=self._cluster_ids.get(identity, ""),
            on_joined=lambda cluster_id: self._cluster_ids.__setitem__(identity, cluster_id),
            on_ended=lambda reason: self._on_ended(broker, host.start_count, reason),
            scenario=self.scenario,
            checker=self.checker,
            trace=self.trace,
            buckets=self.buckets.open(seams.process) if self.scenario.bucket_regions else None,
        )

    def _labels_of(self, broker: BrokerId) -> Labels:
        if not self.scenario.lost_after_ms and not self.scenario.bucket_regions:
            return Labels()
        zones = self.scenario.zones
        return Labels(region=self.labels[broker], zone=zones[broker - 1] if zones else "")


def _has_failed(member: Member) -> bool:
    return any(r.failed is not None for r in member.replication.replicas.values())
