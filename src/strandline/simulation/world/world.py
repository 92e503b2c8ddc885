"""A simulated cluster: hosts, links, brokers, clients and faults, from start to verdict.

Why:    the one place where a scenario becomes a run.
How:    start all -> load and faults for `active_ms` -> end every fault -> the cluster must work
        again -> load ends -> all replicas must agree -> the logs are audited -> nobody speaks
        without need (`verdicts`). Audits also happen now and then on the way.
Owns:   everything that the run consists of.
Source: design section 10; design section 3 ("only two places put a broker together")."""

import contextlib
import random
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from strandline.base.errors import StorageError
from strandline.model.cluster import KeptLabels, Labels
from strandline.model.ids import BrokerId, GroupId
from strandline.raft.group.configuration import Configuration
from strandline.replication.replica.replica import Replica
from strandline.simulation.clients.clients import Client
from strandline.simulation.clients.consumers import Consumer
from strandline.simulation.clients.deleters import Deleter
from strandline.simulation.clients.group_consumers import GroupConsumer
from strandline.simulation.clients.loss_declarations import LossDeclaration
from strandline.simulation.clients.near_readers import near_readers_of
from strandline.simulation.clients.operators import Operator
from strandline.simulation.clients.producers import Producer
from strandline.simulation.clients.reassignments import Reassigner
from strandline.simulation.clients.table_readers import TableReader
from strandline.simulation.clients.values import Values
from strandline.simulation.disk.damage import BAD_DISKS, ROT, has_rotten_segments, rotting_broker
from strandline.simulation.faults.disturbances import Disturbances
from strandline.simulation.faults.fault_targets import End, over
from strandline.simulation.faults.faults import FAULTS
from strandline.simulation.invariants.audit import audit
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.invariants.crossings import Settling, is_undisturbed
from strandline.simulation.invariants.facts import LogAudited, Subject
from strandline.simulation.invariants.role_changes import asking_more
from strandline.simulation.invariants.shortened_logs import note_created
from strandline.simulation.invariants.soundness import await_soundness
from strandline.simulation.invariants.verdicts import (
    await_balance,
    await_group,
    await_near_readers,
    await_rest,
    await_writes,
    observe_rest,
)
from strandline.simulation.network.link import Link
from strandline.simulation.network.network import SimFabric
from strandline.simulation.network.traffic_recorder import TrafficRecorder
from strandline.simulation.scenarios.scenario import GroupPlan, PlannedFault, Scenario
from strandline.simulation.world.bootstrap import found_cluster
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.host import Seams, SimHost
from strandline.simulation.world.member import GroupMember, Member
from strandline.simulation.world.scheduler import US_PER_MS, Scheduler
from strandline.simulation.world.tally import Tally
from strandline.simulation.world.trace import WORLD, Trace

A = TypeVar("A", bound=Client)


class World:
    """See the module."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.scheduler = Scheduler()
        self.trace = Trace(self.scheduler)
        self.rng = random.Random(f"world {scenario.seed}")
        self.checker = Checker(
            idempotent_producers=[p.name for p in scenario.producers if p.is_idempotent],
            power_fails=scenario.power_fails,
            has_relaxed=any(plan.acks != -1 for plan in scenario.producers),
            is_cached=scenario.log.write_caching,
            resend_timeout_ms=scenario.settings.resend_timeout_ms,
            regions=dict(zip(scenario.brokers, scenario.regions, strict=True)),
            key_count=scenario.key_count,
            logs_of=self._logs_of,
        )
        self.checker.on_violation = self._stop
        self.fabric = SimFabric(
            self.scheduler, random.Random(self.rng.getrandbits(64)), self._make_link
        )
        homes = {plan.group: {*plan.voters, *plan.observers} for plan in scenario.groups}
        self._traffic_recorder = self.fabric.tap = TrafficRecorder(
            self.checker, self.scheduler, homes=homes
        )
        self.tally = Tally()
        self.values = Values()
        self.hosts: dict[BrokerId, SimHost[Member]] = {
            broker: self._make_host(broker) for broker in scenario.brokers
        }
        self._plans = {plan.group: plan for plan in scenario.groups}
        self.producers = [
            Producer(plan, self, random.Random(self.rng.getrandbits(64)), producer_id=number + 1)
            for number, plan in enumerate(scenario.producers)
        ]
        self._consumers = [
            Consumer(f"c{number}", self, random.Random(self.rng.getrandbits(64)))
            for number in range(scenario.consumer_count)
        ]
        self.group_consumers = [
            GroupConsumer(f"g{number}", self, random.Random(f"group {scenario.seed} {number}"))
            for number in range(scenario.group_consumer_count)
        ]
        self.near_readers = near_readers_of(self)
        self.table_readers = self._one_if(bool(scenario.tombstone_ratio), TableReader, "t tables")
        self.deleters = self._one_if(scenario.delete_interval_ms > 0, Deleter, "d deletions")
        self.movers = self._one_if(scenario.move_interval_ms > 0, Reassigner, "m moves")
        self.operators = self._one_if(bool(scenario.changes), Operator, "o operator")
        self.declarers = self._one_if(
            scenario.declares_losses, LossDeclaration, "u declared losses"
        )
        self.kept_down: set[BrokerId] = set()
        """Brokers that may not be started now: an operator sees to that."""
        self.labels = dict(zip(scenario.brokers, scenario.regions, strict=True))
        """{broker: the region that its configuration says}; an operator may change it."""
        self.rotten_journals: set[tuple[BrokerId, int]] = set()
        """(broker, number of its disk): no process may start with the journal there."""
        self.begun_kinds: set[str] = set()
        """The kinds of faults that were tried."""
        self.disturbances = Disturbances(self)
        self._faults_active = False
        self._is_audited = False
        """Whether nothing is written any more, and the logs were read for the last time."""
        self._ends: dict[int, End] = {}
        self._restarts: set[BrokerId] = set()
        self._cluster_ids: dict[tuple[BrokerId, int], str] = {}
        """{(broker, number of its disk): the cluster that it has joined with it}."""
        self._kept_labels: dict[tuple[BrokerId, int], KeptLabels] = {}
        """{the same: what it keeps of the broker's labels}"""
        self._lacking: set[BrokerId] = set()
        """Brokers whose disk was lost and that have not been seen to be whole again."""

    def _one_if(
        self, is_wanted: bool, kind: Callable[[str, "World", random.Random], A], named: str
    ) -> list[A]:
        """One client, where it is wanted. `named`: its name, and what it draws for."""
        name, _, purpose = named.partition(" ")
        rng = random.Random(f"{purpose} {self.scenario.seed}")
        return [kind(name, self, rng)] if is_wanted else []

    # ---- for faults and clients --------------------------------------------------------------

    @property
    def clients(self) -> list[Client]:
        """Everybody who asks brokers."""
        return [
            *self.producers,
            *self._consumers,
            *self.group_consumers,
            *self.near_readers,
            *self.table_readers,
            *self.deleters,
            *self.movers,
            *self.operators,
            *self.declarers,
        ]

    @property
    def may_lose_relaxed(self) -> bool:
        """Whether what consumers saw may be lost with the power: it was not on enough disks."""
        scenario = self.scenario
        has_relaxed = any(plan.acks != -1 for plan in scenario.producers)
        return scenario.power_fails and (has_relaxed or scenario.log.write_caching)

    def region_of(self, broker: BrokerId) -> str:
        """Where a broker lives."""
        return self.scenario.regions[broker - 1]

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
        """Those that believe to lead, in random order if `rng` is given."""
        leading = [replica for replica in self.replicas() if replica.is_leader]
        return leading if rng is None else rng.sample(leading, len(leading))

    def leading_brokers(self) -> list[BrokerId]:
        """Brokers that lead something, each once."""
        return list(dict.fromkeys(replica.self_id for replica in self.leading_replicas()))

    def restart(self, broker: BrokerId) -> None:
        """Start a host that is down, soon."""
        if self.hosts[broker].is_up or broker in self._restarts:
            return
        self._restarts.add(broker)
        delay_ms = self.rng.randint(*self.scenario.restart_delay_ms)
        self.scheduler.after(delay_ms * US_PER_MS, lambda: self._start(broker))

    def may_lose_disk(self, broker: BrokerId) -> bool:
        """Whether the others are enough, every disk lost before is made good for, and what has
        rotted is mended."""
        if not self.has_spare_voters(broker):
            return False
        rotting = rotting_broker(self)
        has_rotted = self.begun_kinds & ROT and has_rotten_segments(self.hosts[rotting].disk)
        if has_rotted and rotting != broker:
            return False
        # Who has to find out by itself takes no part before, whether its disk is the first or not.
        candidates = self.scenario.brokers if self.scenario.asks_voters else self._lacking
        self._lacking = {b for b in candidates if not self._is_whole(b)}
        return not self._lacking

    def may_replace_disk(self, broker: BrokerId) -> bool:
        """Whether all others are whole: who returns with an empty disk needs no more than them."""
        others = [other for other in self.scenario.brokers if other != broker]
        return all(self._is_whole(other) for other in others)

    def may_spare_disk(self, broker: BrokerId) -> bool:
        """Whether everything that was acknowledged stays where that broker loses its disk, whatever
        voters may be in force, and the group can go on without a person.

        No disk lost before may be missing. A record is on W of N voters, a majority at least: with
        one of them gone N - W + 1 others hold it all, where there are two. Who is down keeps what
        it had; a single voter is the only one that is sure to have anything. So is one that was
        fenced, and may be chosen alone: nobody could tell afterwards that it never led."""
        self._lacking = {one for one in self._lacking if not self._is_known_whole(one)}
        up = [one for one in self.scenario.brokers if self.hosts[one].program is not None]
        if self._lacking or not all(map(self._is_known_whole, up)):
            return False
        for plan in self.scenario.groups:
            known = self.checker.voters.get(plan.group)
            if known is None:
                placed = self.voters_of(plan.group)
                if placed is None:
                    return False
                possible = placed
            else:
                possible = known.possible
            if any(broker in voters and len(voters) < 2 for voters in possible):
                return False
            is_fenced = known is not None and known.what == "grant"
            if is_fenced and any(broker in voters for voters in possible):
                return False
        return True

    def voters_of(self, group: GroupId) -> tuple[tuple[BrokerId, ...], ...] | None:
        """All voters that may be in force, as the broker knows it that has heard most."""
        members = [host.program for host in self.hosts.values()]
        known = [
            (one.made.controller.cluster.version, one.broker, partition.possible)
            for one in members
            if isinstance(one, BrokerMember) and (partition := one.partition_of(group))
        ]
        return max(known)[2] if known else None

    def has_spare_voters(self, broker: BrokerId) -> bool:
        """Whether every group can commit without that broker."""
        for plan in self.scenario.groups:
            voters = Configuration(voters=plan.voters, min_insync=plan.min_insync)
            if broker in plan.voters and len(plan.voters) == voters.write_quorum(plan.voters):
                return False
        return True

    def lose_disk(self, broker: BrokerId) -> None:
        """Take the disk of a broker away."""
        self._lacking.add(broker)
        self.hosts[broker].lose_disk()

    def _is_whole(self, broker: BrokerId) -> bool:
        member = self.hosts[broker].program
        if member is None:
            return False
        if isinstance(member, BrokerMember) and not member.is_whole():
            return False
        plans = [plan for plan in self.scenario.groups if broker in plan.voters]
        replicas = [member.replication.replicas.get(plan.group) for plan in plans]
        return all(r is not None and not r.raft.has_lost_state for r in replicas)

    def _is_known_whole(self, broker: BrokerId) -> bool:
        """The same, of all that it should hold by now, wherever that was placed."""
        member = self.hosts[broker].program
        has_opened = not isinstance(member, BrokerMember) or member.has_opened_all()
        return has_opened and self._is_whole(broker)

    # ---- the run -----------------------------------------------------------------------------

    def run(self) -> str | None:
        """The whole run; returns what was violated, or None."""
        try:
            self._run()
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{where.filename.rsplit('/', 1)[-1]}:{where.lineno}"
            self.checker.fail(f"NoUnexpectedError: {error!r} at {place}")
            self.trace.add(WORLD, "".join(traceback.format_exception(error)))
        if self.checker.violation is not None:
            self.trace.add(WORLD, f"VIOLATION {self.checker.violation}")
        self._count()
        self.trace.add(
            WORLD,
            f"ends after {self.tally.message_count} messages, "
            f"checksum {self.fabric.counters.checksum:08x}",
        )
        for host in self.hosts.values():
            host.on_down = None
            host.kill()
        return self.checker.violation

    def start_brokers(self) -> None:
        """Boot every host, not all at once."""
        for broker in self.scenario.brokers:
            delay_ms = self.rng.randint(0, self.scenario.start_spread_ms)
            self.scheduler.after(delay_ms * US_PER_MS, partial(self._start, broker))

    def _run(self) -> None:
        self.checker.roles.asking = asking_more(self.scenario)
        self.start_brokers()
        if self.scenario.has_brokers:
            found_cluster(self)
        for client in self.clients:
            client.start()
        if is_undisturbed(self.scenario):
            Settling(self).watch()
        self._faults_active = True
        for number, fault in enumerate(self.scenario.plan_faults()):
            begin = partial(self._begin_fault, number, fault)
            self.scheduler.after(fault.at_ms * US_PER_MS, begin)
        self._audit_later()
        self.advance(self.scenario.active_ms)
        self._end_faults()
        for client in (*self.producers, *self.movers):
            client.stop()
        await_writes(self)
        await_group(self)
        await_balance(self)
        await_near_readers(self)
        for client in (
            *self._consumers,
            *self.group_consumers,
            *self.near_readers,
            *self.table_readers,
            *self.deleters,
            *self.declarers,
        ):
            client.stop()
        await_rest(self)
        await_soundness(self)
        if not self.is_over:
            self._audit(is_final=True)
            self._is_audited = True
            observe_rest(self)

    def advance(self, duration_ms: int) -> None:
        """Let time go by, until something is violated."""
        self.scheduler.run_until(self.scheduler.now_us + duration_ms * US_PER_MS)

    def _stop(self) -> None:
        self.scheduler.is_stopped = True

    @property
    def is_over(self) -> bool:
        """Whether something was violated."""
        return self.checker.violation is not None

    # ---- hosts -------------------------------------------------------------------------------

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
            on_created=lambda path: note_created(self, broker, path),
        )
        host.on_down = lambda: self._on_down(broker)
        return host

    def _make_link(self, source: BrokerId, target: BrokerId) -> Link:
        one_way_us = self.scenario.one_way_us[self.region_of(source), self.region_of(target)]
        return Link(
            latency_us=one_way_us,
            jitter_us=int(one_way_us * self.scenario.jitter_ratio),
            bytes_per_ms=self.scenario.bytes_per_ms,
            loss_ratio=self.scenario.loss_ratio,
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
        )

    def _labels_of(self, broker: BrokerId) -> Labels:
        if not self.scenario.lost_after_ms:
            return Labels()
        zones = self.scenario.zones
        return Labels(region=self.labels[broker], zone=zones[broker - 1] if zones else "")

    def _on_ended(self, broker: BrokerId, life: int, reason: str) -> None:
        """A broker gave up: its process ends, and whoever watches over it starts another one."""
        self.trace.add(f"broker {broker}", f"gives up: {reason}")

        def end() -> None:
            host = self.hosts[broker]
            if host.is_up and host.start_count == life:
                host.kill()
            self.restart(broker)

        self.scheduler.after(0, end)

    def _start(self, broker: BrokerId) -> None:
        self._restarts.discard(broker)
        if broker in self.kept_down:
            self.restart(broker)
            return
        host = self.hosts[broker]
        if not host.is_up:
            self.tally.start_count += 1
            host.start()
            self.disturbances.tell()
            if host.program is not None and (broker, host.disk_number) in self.rotten_journals:
                self.checker.fail(f"NoDamageServed: broker {broker} starts with a rotten journal")

    def _on_down(self, broker: BrokerId) -> None:
        """Nobody else may know that it died, when it did so in the middle of something."""
        self.disturbances.tell()
        errors = self.hosts[broker].loop_errors
        if errors:
            self.checker.fail(f"NoUnexpectedError: broker {broker}: {errors[0]}")
        if not self._faults_active:
            self.restart(broker)

    # ---- faults ------------------------------------------------------------------------------

    def _begin_fault(self, number: int, fault: PlannedFault) -> None:
        if not self._faults_active:
            return
        self.begun_kinds.add(fault.kind)
        end = FAULTS[fault.kind].begin(self, random.Random(fault.seed))
        if end is None:
            self.tally.void_fault_count += 1
            return
        self.disturbances.begin(number, fault.kind)
        counts = self.tally.fault_counts
        counts[fault.kind] = counts.get(fault.kind, 0) + 1
        if end is not over:
            self._ends[number] = end
            duration_us = fault.duration_ms * US_PER_MS
            self.scheduler.after(duration_us, lambda: self._end_fault(number))

    def _end_fault(self, number: int) -> None:
        end = self._ends.pop(number, None)
        if end is not None:
            end()
            self.disturbances.end(number)

    def _end_faults(self) -> None:
        """Everything works again; who has failed is started anew."""
        self.trace.add(WORLD, "all faults end")
        self._faults_active = False
        for number in list(self._ends):
            self._end_fault(number)
        for broker, host in self.hosts.items():
            if host.is_up and host.program is None:
                host.kill()
            elif host.program is not None and self._has_failed(host.program):
                self.trace.add(host.name, "has failed replicas and is started anew")
                host.fail_power()
            self.restart(broker)

    @staticmethod
    def _has_failed(member: Member) -> bool:
        return any(r.failed is not None for r in member.replication.replicas.values())

    # ---- verdicts ----------------------------------------------------------------------------

    def _audit_later(self) -> None:
        interval_us = self.scenario.audit_interval_ms * US_PER_MS
        self.scheduler.after(interval_us, self._audit_now)

    def _audit_now(self) -> None:
        if not self._is_audited:
            self._audit(is_final=False)
            self._audit_later()

    def _logs_of(self, group: GroupId) -> Iterator[LogAudited]:
        """What can be read of a group's logs now."""
        for replica in self.replicas():
            if replica.group == group:
                with contextlib.suppress(StorageError, ValueError):
                    yield audit(replica, self.values, is_final=False)

    def _audit(self, *, is_final: bool) -> None:
        members = {r.group: r.configuration.members for r in self.replicas() if r.is_serving}
        for replica in self.replicas():
            if replica.group not in self._plans:
                continue
            # Who was removed from its group does not hear of the end.
            is_member = replica.self_id in members.get(replica.group, ())
            try:
                fact = audit(replica, self.values, is_final=is_final and is_member)
            except StorageError as error:
                if not BAD_DISKS & self.begun_kinds:
                    raise
                self.trace.add(f"broker {replica.self_id}", f"{replica.name} is damaged: {error}")
                self.tally.damage_count += 1
                continue
            except ValueError as error:
                self.checker.fail(
                    f"NoDamageServed: {replica.name}: broker {replica.self_id}: {error}",
                    Subject(replica.group),
                )
                return
            self.checker.log_audited(fact)
            if is_final:
                self.tally.superseded_count += sum(
                    batch.next_offset - batch.base_offset - len(batch.records)
                    for batch in fact.batches
                )

    def _count(self) -> None:
        tally = self.tally
        tally.virtual_us = self.scheduler.now_us
        tally.event_count = self.scheduler.executed_count
        tally.message_count = self.fabric.counters.delivered_count
        tally.acknowledged_count = sum(p.acknowledged_count for p in self.producers)
        tally.commit_count = sum(one.commit_count for one in self.group_consumers)
        tally.generation_count = sum(one.generation_count for one in self.group_consumers)
        near = self.near_readers
        tally.read_count = sum(one.read_count for one in self._consumers)
        tally.read_count += sum(one.read_count for one in near)
        tally.ruling_count = sum(one.ruling_count for one in self.operators)
        tally.declared_count = sum(one.declared_count for one in self.declarers)
        tally.given_up_count = self.checker.shown_losses.lost_count
        tally.near_count = sum(one.near_count for one in near)
        tally.table_count = sum(one.table_count for one in self.table_readers)
        tally.deletion_count = sum(one.deletion_count for one in self.deleters)
        tally.move_count = sum(one.move_count for one in self.movers)
        tally.balance_count = len(self.checker.balanced)
        tally.copied_bytes = self._traffic_recorder.copied_bytes
        tally.election_count = self.checker.election_count
        tally.role_counts = dict(self.checker.roles.counts)
        tally.lost_write_count = sum(
            host.disk.counters.lost_change_count for host in self.hosts.values()
        )
