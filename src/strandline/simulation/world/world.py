"""One run: a simulated cluster with its load and its faults, from start to verdict.

Why:    the one place where a scenario becomes a run.
How:    start all -> load and faults for `active_ms` -> end every fault -> the cluster must work
        again -> load ends -> all replicas must agree -> the logs are audited -> no broker sends
        without need (`verdicts`). Audits also happen now and then on the way.
Owns:   the parts of the run, and what it amounted to.
Source: design section 10; design section 3 ("only two places put a broker together")."""

import traceback

from strandline.base.errors import StorageError
from strandline.simulation.clients.load import Load
from strandline.simulation.faults.kinds import BAD_DISKS
from strandline.simulation.faults.schedule import FaultSchedule
from strandline.simulation.invariants.audit import audit
from strandline.simulation.invariants.facts import Subject
from strandline.simulation.invariants.repairs import await_repairs
from strandline.simulation.invariants.role_changes import above_majority
from strandline.simulation.invariants.verdicts import (
    await_balance,
    await_group,
    await_near_readers,
    await_rest,
    await_writes,
    observe_rest,
)
from strandline.simulation.network.settling import Settling, is_undisturbed
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.world.bootstrap import bootstrap_cluster
from strandline.simulation.world.clock import WALL_START_MS
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.scheduler import US_PER_MS
from strandline.simulation.world.tally import Tally
from strandline.simulation.world.trace import WORLD


class World:
    """See the module. `scheduler`, `hosts`, `fabric`, `checker` and `trace` are the cluster's."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.cluster = cluster = SimCluster(scenario)
        self.scheduler = cluster.scheduler
        self.hosts = cluster.hosts
        self.fabric = cluster.fabric
        self.checker = cluster.checker
        self.trace = cluster.trace
        self.load = Load(cluster)
        self.producers = self.load.producers
        self.tally = Tally()
        self._faults = FaultSchedule(cluster)
        self._is_audited = False
        """Whether nothing is written any more, and the logs were read for the last time."""

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
        self._end_copies()
        self._count()
        self.trace.add(
            WORLD,
            f"ends after {self.tally.message_count} messages, "
            f"checksum {self.fabric.counters.checksum:08x}",
        )
        self.cluster.shut_down()
        return self.checker.violation

    def _run(self) -> None:
        cluster, load = self.cluster, self.load
        self.checker.roles.above_majority = above_majority(self.scenario)
        cluster.start_brokers()
        if self.scenario.has_brokers:
            bootstrap_cluster(cluster)
        load.start()
        if is_undisturbed(self.scenario):
            Settling(cluster).watch()
        self._faults.begin()
        self._audit_later()
        cluster.advance(self.scenario.active_ms)
        self.trace.add(WORLD, "all faults end")
        self._faults.end()
        cluster.restart_the_failed()
        load.stop_writes()
        await_writes(cluster, load)
        await_group(cluster, load)
        await_balance(cluster, load)
        await_near_readers(cluster, load)
        load.stop_reads()
        await_rest(cluster, load)
        await_repairs(cluster)
        if not cluster.is_over:
            self._audit(is_final=True)
            self._is_audited = True
            observe_rest(cluster, load)
            self._end_copies()
            self._collect()

    def _end_copies(self) -> None:
        for one in self.load.copies:
            one.end()

    def _collect(self) -> None:
        """What the collector of orphans does once all is at rest."""
        if self.scenario.bucket_regions and not self.cluster.is_over:
            states = {
                one.group: one.tier.state
                for one in self.cluster.replicas()
                if one.is_serving and self.cluster.has_plan(one.group)
            }
            now_ms = WALL_START_MS + self.scheduler.now_us // US_PER_MS
            self.cluster.bucket_watch.collect(
                states, cluster_id=self.cluster.cluster_id, now_ms=now_ms
            )

    # ---- audits --------------------------------------------------------------------------------

    def _audit_later(self) -> None:
        interval_us = self.scenario.audit_interval_ms * US_PER_MS
        self.scheduler.after(interval_us, self._audit_now)

    def _audit_now(self) -> None:
        if not self._is_audited:
            self._audit(is_final=False)
            self._audit_later()

    def _audit(self, *, is_final: bool) -> None:
        if self.scenario.bucket_regions:
            self.cluster.tier_audit.audit()
        replicas = self.cluster.replicas()
        members = {r.group: r.configuration.members for r in replicas if r.is_serving}
        for replica in replicas:
            if not self.cluster.has_plan(replica.group):
                continue
            # A replica that was removed from its group does not learn of the end.
            is_member = replica.self_id in members.get(replica.group, ())
            try:
                fact = audit(replica, self.cluster.values, is_final=is_final and is_member)
            except StorageError as error:
                if not BAD_DISKS & self.cluster.begun_kinds:
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
        tally.start_count = self.cluster.start_count
        tally.given_up_count = self.checker.shown_losses.lost_count
        tally.balance_count = len(self.checker.balanced)
        tally.copied_bytes = self.cluster.traffic.copied_bytes
        tally.election_count = self.checker.election_count
        tally.role_counts = dict(self.checker.roles.counts)
        tally.lost_write_count = sum(
            host.disk.counters.lost_change_count for host in self.hosts.values()
        )
        self.load.count(tally)
        self._faults.count(tally)
