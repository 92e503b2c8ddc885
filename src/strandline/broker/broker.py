"""One broker above its replication: from its start to its stop.

Why:    the real process and the simulator run the same broker; only what it is given differs.
How:    start:  group 0 --replay--> known peers, topics --register--> own replicas --> ready
            listen: the Kafka ports (the real world only)
        Until this broker has replayed its own registration, it holds no partition and accepts no
        client: then its state is at least as new as its own start.
Owns:   the hosts of the control plane, the router, the loops; not what it is given.
Source: design section 3."""

import asyncio
import logging
import random
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol
from uuid import UUID

from strandline.base.clock import Clock
from strandline.base.disk import Disk
from strandline.base.errors import ApiError, OperatorError, UnregisteredError
from strandline.broker.composition import cluster_exports_of, remote_log_of, services_of
from strandline.broker.coordinators.quorum_status import answer_quorum_questions
from strandline.broker.groups.arbitration import Arbitrating
from strandline.broker.groups.hosting import Hosting
from strandline.broker.handler_table import HANDLERS
from strandline.broker.leadership.draining import Draining
from strandline.broker.leadership.electing import answer_elections
from strandline.broker.leadership.following import Following
from strandline.broker.operations.broker_registration import (
    answer_introductions,
    introduce_to_all,
    wait_unregistered,
)
from strandline.broker.operations.compaction_loop import CompactionLoop
from strandline.broker.operations.labelling import OwnLabels
from strandline.broker.operations.leaving import hand_over
from strandline.broker.operations.maintenance_loop import MaintenanceLoop
from strandline.broker.operations.remembered_addresses import remembered_addresses
from strandline.broker.quotas.address_rates import AddressRates
from strandline.broker.server.connection_rate import NO_RATE, ConnectionRate
from strandline.broker.server.limits import ServerLimits
from strandline.broker.server.listening import ListenerTerms
from strandline.broker.server.router import Router
from strandline.broker.server.server import Server
from strandline.config.broker import BrokerConfig
from strandline.config.broker_life import CONNECTION_RATE, BrokerLife
from strandline.config.principal_rules import PrincipalRules
from strandline.controller.commands import Answer, BrokerAdmitted, Refused, RegisterBroker
from strandline.controller.decision import maintained_of
from strandline.controller.records import BrokerRegistered, Record, ReplicasDeclaredLost
from strandline.model.cluster import Broker as RegisteredBroker
from strandline.model.cluster import Labels, StoredLabels
from strandline.model.ids import CONTROLLER_GROUP
from strandline.protocol.errors import Error, is_retriable
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica
from strandline.security.tls import ServerTls
from strandline.tiered.objects.buckets import Buckets

REGISTER_TIMEOUT_MS = 5_000
REMINDER_MS = 5_000
SILENCES_MIN = 3
"""Requests without an answer before the log names a less likely reason."""

_log = logging.getLogger("strandline.broker")


class _Loop(Protocol):
    """A background loop of a broker."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


class Broker:
    """See the module. `directory_id` and `cluster_id` are the data directory's; the latter is
    empty until the broker has joined a cluster, and then given to `on_joined`. `must_be_known`:
    join only if the cluster still knows this broker. `on_failed` is called with the reason when the
    broker cannot continue. `labels`: where it runs, by its
    configuration; `kept_labels` and `on_labelled`: see `OwnLabels`. `buckets`: the object stores;
    those of its configuration, if none are given."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        rng: random.Random,
        disk: Disk,
        replication: Replication,
        directory_id: str,
        labels: Labels,
        kept_labels: StoredLabels | None = None,
        on_labelled: Callable[[StoredLabels], None] | None = None,
        cluster_id: str = "",
        on_joined: Callable[[str], None] | None = None,
        on_failed: Callable[[str], None] | None = None,
        must_be_known: bool = False,
        buckets: Buckets | None = None,
    ) -> None:
        self.config = config
        self._labels = OwnLabels(labels, kept_labels, on_labelled)
        self.replication = replication
        self.services = services = services_of(
            config=config,
            clock=clock,
            rng=rng,
            replication=replication,
            directory_id=directory_id,
            buckets=buckets or Buckets.of(config.tiered),
        )
        services.remote_log = remote_log_of(services, disk)
        self.controller, self.coordinator = services.controller, services.coordinator
        self.router = Router(services, HANDLERS)
        self.server: Server | None = None
        self._clock = clock
        self._cluster_id = cluster_id
        self._directory_id = directory_id
        self._incarnation = f"{rng.getrandbits(128):032x}"
        self._on_joined = on_joined
        self._on_failed = on_failed
        self._must_be_known = must_be_known
        self.is_unregistered = False
        """Whether it ended because the cluster has forgotten it."""
        self._hosting = Hosting(
            config=config,
            clock=clock,
            disk=disk,
            replication=replication,
            controller=self.controller,
            topic_configs=services.topic_configs,
            leader_ranks=services.leader_ranks,
            incarnation=self._incarnation,
            reconcile_soon=self._reconcile_soon,
        )
        self._maintenance = MaintenanceLoop(
            clock=clock,
            replication=replication,
            interval_ms=config.storage.retention_check_interval_ms,
            adjust=self._hosting.adjust_led_groups,
        )
        self._arbitrating = Arbitrating(services)
        self._loops = self._made_loops()
        self._replayed = asyncio.Event()
        self._reconciled = asyncio.Event()
        self._is_reconcile_due = self._was_registered = False
        self._is_stopped = False
        self._watching: asyncio.Task[None] | None = None

    def _made_loops(self) -> tuple[_Loop, ...]:
        services = self.services
        return (
            self._maintenance,
            CompactionLoop(
                clock=self._clock, replication=self.replication, cluster=services.cluster
            ),
            services.failback,
            Following(services),
            self._arbitrating,
            services.balancing,
            Draining(services),
            services.exporting,
            services.read_replicas,
            *(() if services.tiering is None else (services.tiering, cluster_exports_of(services))),
        )

    async def start(self) -> None:
        """Join the cluster and open the logs here; returns when requests can be answered.

        `replication` has been started. Raises OperatorError if the cluster refuses this broker;
        OSError or StorageError if the controller's log cannot be opened, and no other broker has
        it."""
        answer_introductions(self.replication, self.controller)
        answer_elections(self.services)
        answer_quorum_questions(self.services)
        self.controller.on_applied.append(self._on_applied)
        self.controller.on_caught_up.append(self._on_caught_up)
        self.replication.on_elected.append(self._on_elected)
        self.replication.on_leadership.append(self._on_leadership)
        self.replication.on_failed.append(self._on_replica_failed)
        self.controller.on_damaged.append(self._start_repairs)
        journal = self.replication.durable.journal
        self.controller.on_adopted.append(self._on_adopted)
        self.controller.load(is_new=journal.get(CONTROLLER_GROUP) is None)
        spec = self._hosting.controller_spec()
        opening = self._hosting.controller_log
        replica = opening.open_nowait(spec)
        introducing = asyncio.get_running_loop().create_task(
            introduce_to_all(self.replication, self.config)
        )
        try:
            replica = replica or await opening.wait_opened(spec)
            self._add_remembered_voters(replica)
            self._check_snapshot(replica)
            self.controller.start(replica)
            await self._register()
            await self._wait_replayed()
        finally:
            introducing.cancel()
        self.controller.on_applied.append(self.services.new_topics.on_applied)
        self._reconciled.clear()
        self._reconcile_soon()
        await self._reconciled.wait()
        self._hosting.remove_strays()
        if self.services.remote_log is not None and self.services.buckets.names:
            self.services.remote_log.start()
        for loop in self._loops:
            loop.start()
        self._watching = asyncio.get_running_loop().create_task(self._watch())
        self._start_repairs()

    async def listen(
        self,
        limits: ServerLimits,
        *,
        claimed: Mapping[str, socket.socket] | None = None,
        tls: Mapping[str, ServerTls] | None = None,
    ) -> Server:
        """Open the ports for Kafka clients. `claimed`: sockets of `listening.claim_port`, `tls`:
        the certificates of listeners with TLS, both by the listener's name.

        Raises OperatorError if a port is not available."""
        server = Server(
            router=self.router,
            clock=self._clock,
            limits=limits,
            memory=self.replication.memory,
            audit=self.services.audit,
            address_rates=AddressRates(self.services.cluster, self._clock),
        )
        self.server = server
        all_listeners = ConnectionRate(self._connection_rate, CONNECTION_RATE)
        self.services.logins.start()
        for listener in self.config.listeners:
            rules = PrincipalRules(listener.entry.principal_mapping_rules if listener.entry else "")
            rates = [all_listeners]
            if listener.entry is not None:
                most = listener.entry.connection_rate_max
                key = f"{listener.place} connection_rate_max"
                rates.append(ConnectionRate(partial(int, most), key))
            await server.start(
                listener.bind.host,
                listener.bind.port,
                claimed=(claimed or {}).get(listener.name),
                terms=ListenerTerms(
                    name=listener.name,
                    tls=(tls or {})[listener.name] if listener.is_tls else None,
                    rules=rules,
                    has_logins=listener.has_logins,
                ),
                rates=rates,
            )
            _log.info(
                "broker %d serves Kafka clients on %s%s",
                self.config.broker_id,
                listener.bind,
                f" with {listener.protocol}" if listener.is_tls else "",
            )
        return server

    def _connection_rate(self) -> int:
        """How many connections a second the broker accepts, by the newest configuration."""
        cluster = self.services.cluster
        own = cluster.broker_configs.get(self.config.broker_id, {})
        value = own.get(CONNECTION_RATE) or cluster.cluster_configs.get(CONNECTION_RATE)
        if value is None:
            return NO_RATE
        return BrokerLife.from_values({CONNECTION_RATE: value}).max_connection_creation_rate

    def allow_isolation(self, silence: Callable[[bool], None]) -> None:
        """Let drills cut this broker off; `silence` cuts its links to the other brokers."""

        def cut(*, is_cut: bool) -> None:
            silence(is_cut)
            if self.server is not None:
                self.server.refuse(is_refusing=is_cut)

        self.services.isolation.cut = cut

    async def leave(self) -> None:
        """Hand over what is led here while clients are still served; call `stop` afterwards."""
        for loop in self._loops:
            loop.stop()
        spared = maintained_of(self.controller.cluster)
        await hand_over(self.replication, self._clock, spared=spared)

    def stop(self) -> None:
        """Stop serving. The owner of `replication` stops that afterwards."""
        self._is_stopped = True
        if self._watching is not None:
            self._watching.cancel()
        if self.server is not None:
            self.server.stop()
            self.server = None
        self.services.logins.stop()
        for loop in self._loops:
            loop.stop()
        if self.services.remote_log is not None:
            self.services.remote_log.stop()
        self._hosting.moving.stop()
        self._hosting.rejoining.stop()
        self.services.isolation.stop()
        self.services.copy_budget.stop()
        self.router.stop()
        if self.services.audit is not None:
            self.services.audit.stop()
        self.coordinator.stop()
        self.controller.stop()

    # ---- joining -------------------------------------------------------------------------------

    def _add_remembered_voters(self, replica: Replica) -> None:
        """Make voters peers that are not seeds: they may be the only brokers that are up."""
        known = {self.config.broker_id, *(seed.id for seed in self.config.seeds)}
        brokers = self.controller.cluster.brokers
        voters = replica.configuration.all_voters
        snapshot = {one: brokers[one].rpc for one in voters if one in brokers and one not in known}
        for voter, address in (snapshot | remembered_addresses(replica, known)).items():
            self.replication.set_peer(voter, address.host, address.port)

    def _check_snapshot(self, replica: Replica) -> None:
        """Refuse to wait for a snapshot that no other broker has."""
        if replica.lacks_snapshot and replica.is_only_voter:
            where = self.controller.snapshots.files.directory
            raise OperatorError(
                f"no snapshot in {where} is whole, the controller's log begins at offset "
                f"{replica.log.start_offset}, and no other broker has a vote in it: restore the "
                "data directory from a copy"
            )

    async def _register(self) -> None:
        config = self.config
        command = RegisterBroker(
            broker=config.broker_id,
            incarnation=self._incarnation,
            directory_id=self._directory_id,
            rpc=config.rpc_advertised,
            kafka=config.kafka_advertised,
            endpoints=tuple(one.endpoint for one in config.listeners if one.entry is not None),
            labels=self._labels.present(),
            configured=self._labels.configured,
            cluster_id=self._cluster_id or config.cluster.id,
            must_be_known=self._must_be_known,
        )
        silence_count = 0
        while True:
            try:
                answer: Answer = await self.controller.submit(
                    command, timeout_ms=REGISTER_TIMEOUT_MS
                )
            except ApiError:
                silence_count += 1
                _log.warning(
                    "no controller answers yet; trying the brokers %s again%s",
                    ", ".join(str(seed.id) for seed in config.seeds),
                    "" if silence_count < SILENCES_MIN else f"; {self._silence_hint()}",
                )
                continue
            if isinstance(answer, BrokerAdmitted):
                break
            reason = answer.message if isinstance(answer, Refused) else "an unexpected answer"
            if isinstance(answer, Refused) and is_retriable(answer.error_code):
                _log.warning(
                    "the controller cannot admit this broker now: %s; trying again", reason
                )
                await asyncio.sleep(REMINDER_MS / 1000)
                continue
            if isinstance(answer, Refused) and answer.error_code == Error.BROKER_ID_NOT_REGISTERED:
                raise UnregisteredError(reason)
            raise OperatorError(f"the cluster refuses broker {config.broker_id}: {reason}")
        if self._on_joined is not None:
            self._on_joined(answer.cluster_id)

    async def _watch(self) -> None:
        """Fail once this broker is unregistered: it must not look as if it served."""
        await wait_unregistered(self.replication, self.config, self.controller)
        self.is_unregistered = True
        if self._on_failed is not None:
            self._on_failed(
                f"broker {self.config.broker_id} was unregistered: start it again to join anew"
            )

    def _silence_hint(self) -> str:
        own = self.config.broker_id
        return f"if another broker has the id {own}, the answers go there: see the seeds' logs"

    async def _wait_replayed(self) -> None:
        """Wait until this registration has been replayed here."""
        while True:
            if self._registered() is not None:
                return
            self._replayed.clear()
            try:
                await asyncio.wait_for(self._replayed.wait(), REMINDER_MS / 1000)
            except TimeoutError:
                replica = self.replication.replicas[CONTROLLER_GROUP]
                _log.warning(
                    "registered, but still catching up: this broker has the controller's log up to "
                    "%d of %d, from broker %d",
                    replica.high_watermark,
                    replica.log_end_offset,
                    replica.leader_id,
                )

    def _registered(self) -> RegisteredBroker | None:
        """The registration of this start of this broker, if it is replayed here."""
        own = self.controller.cluster.brokers.get(self.config.broker_id)
        return own if own is not None and own.incarnation == self._incarnation else None

    # ---- what happens ----------------------------------------------------------------------------

    def _start_repairs(self) -> None:
        """Called when the broker is ready; before that only if the controller's log needs it."""
        storage = self.config.storage
        self.replication.repairs.start(
            rate_bytes=storage.scrub_rate, interval_ms=storage.scrub_interval_ms
        )

    def _on_caught_up(self) -> None:
        own = self._registered()
        if own is not None:
            self._labels.note(own)
        self._replayed.set()
        self._reconcile_soon()

    def _reconcile_soon(self) -> None:
        """Reconcile outside the step that moved the controller's log, a share at a time."""
        if not self._is_reconcile_due:
            self._is_reconcile_due = True
            self._clock.call_soon(self._reconcile)

    def _reconcile(self) -> None:
        self._is_reconcile_due = False
        if self._is_stopped:
            return
        try:
            if not self._hosting.reconcile():
                self._reconcile_soon()
                return
        except Exception:  # A task boundary: the next change of the state tries again.
            _log.exception("cannot open and close groups as the controller's state asks")
        self._reconciled.set()

    def _on_applied(self, record: Record) -> None:
        """End a process that was declared lost: until it restarts, the other brokers send it
        nothing (decision 0027). End it also if another start of this broker was registered after
        it: by a second process, or by a late message of an earlier one."""
        own = self.config.broker_id
        if isinstance(record, BrokerRegistered) and record.id == own:
            is_this = record.incarnation == self._incarnation
            if self._was_registered and not is_this and self._on_failed is not None:
                self._on_failed(
                    f"another start of broker {own} was registered after this one: if no other "
                    "process uses this id, start it again"
                )
            self._was_registered = is_this
        elif isinstance(record, ReplicasDeclaredLost) and self._on_failed is not None:
            lost = ((one.broker, one.incarnation) for one in record.loss.lost)
            if (own, self._incarnation) in lost:
                self._on_failed(
                    f"broker {own} was declared lost by {record.loss.by}: start it again, and it "
                    "catches up"
                )

    def _on_adopted(self, _: dict[str, UUID]) -> None:
        """As `_on_applied`, for what a snapshot says of this broker."""
        own = self.config.broker_id
        known = self.controller.cluster.brokers.get(own)
        is_this = known is not None and known.incarnation == self._incarnation
        if self._was_registered and not is_this and self._on_failed is not None:
            self.is_unregistered = known is None
            what = "it was unregistered" if known is None else "another start was registered"
            self._on_failed(f"broker {own} ends: {what} meanwhile")
        self._was_registered = is_this
        groups = self.controller.cluster.groups.values()
        losses = (loss for group in groups if group.losses for loss in group.group_losses)
        lost = {(one.broker, one.incarnation) for loss in losses for one in loss.lost}
        if (own, self._incarnation) in lost and self._on_failed is not None:
            self._on_failed(f"broker {own} was declared lost: start it again, and it catches up")

    def _on_replica_failed(self, replica: Replica) -> None:
        if replica.group == CONTROLLER_GROUP and self._on_failed is not None:
            self._on_failed(f"the controller's log on this broker has failed: {replica.failed}")

    def _on_elected(self, replica: Replica) -> None:
        # It may be unable to commit anything. Not from within the step that made it leader.
        self._clock.call_soon(lambda: self._hosting.adjust(replica))

    def _on_leadership(self, replica: Replica, *, is_leading: bool) -> None:
        if is_leading:
            self._clock.call_soon(lambda: self._hosting.adjust(replica))
