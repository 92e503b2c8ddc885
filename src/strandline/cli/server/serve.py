"""Composes one real broker from its configuration, and runs it until a signal ends it.

Why:    one of two places that give the broker its world: here real files, sockets and time. The
        simulator is the other one.
How:    `serve_file` is the process: configuration, logging, event loop, exit code. `run_broker` is
        the assembly: it makes all parts from the bottom up, and closes them in reverse order.
        SIGTERM or SIGINT ends the broker in order; a second one ends it at once. A process of
        `serve --cores` (`cli.machine.entry`) has a supervisor, which may end the broker, too.
Source: design section 3."""

import asyncio
import ctypes
import gc
import logging
import random
import signal
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypedDict

from strandline.admin.endpoint import MetricsEndpoint
from strandline.base.errors import OperatorError, UnregisteredError
from strandline.broker.broker import Broker
from strandline.broker.operations.certificate_watch import CertificateWatch
from strandline.broker.server.digest_thread import DigestThread
from strandline.broker.server.limits import ServerLimits
from strandline.broker.server.listening import claim_port
from strandline.broker.server.worker_thread import WorkerThread
from strandline.cli.machine.directory import refuse_machine
from strandline.cli.output import print_error
from strandline.cli.server.audit import open_audit_log
from strandline.cli.server.broker_file import load_file
from strandline.cli.server.certificates import http_tokens, load_certificates
from strandline.cli.server.failures import tell_failure
from strandline.cli.server.file_rights import take_rights_from_others
from strandline.cli.server.labels import find_labels, tell_origin
from strandline.cli.server.logs import configure_logging
from strandline.cli.server.open_files import raise_open_files_limit
from strandline.config.broker import BrokerConfig
from strandline.config.webhook_hosts import WebhookHosts
from strandline.model.cluster import StoredLabels
from strandline.network.loop_clock import LoopClock
from strandline.network.tcp import TcpNetwork
from strandline.network.webhook import Webhook
from strandline.placement.topology.labels import MergedLabels
from strandline.replication.host.replication import Replication
from strandline.replication.settings import ReplicationSettings
from strandline.security.audit.audit_log import AuditLog
from strandline.security.peers import PeerTls
from strandline.storage.disk.real_disk import RealDisk
from strandline.storage.identity import DataDirectory
from strandline.storage.stored_labels import read_labels, write_labels
from strandline.tiered.reading.worker import DiskThreads

COLLECTOR_THRESHOLDS = (50_000, 20, 100)
MMAP_THRESHOLD_BYTES = 16 * 1024 * 1024
TRIM_THRESHOLD_BYTES = 32 * 1024 * 1024
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

_log = logging.getLogger("strandline.cli")


class Supervision(Protocol):
    """The supervisor of this process. `is_restart`: it started this broker before."""

    @property
    def is_restart(self) -> bool: ...

    def start(self, endpoint: MetricsEndpoint, end: Callable[[], None]) -> None:
        """Answer it for the broker; `end` ends the broker in order."""

    def stop(self) -> None:
        """Answer no more."""


class _Unsupervised:
    """A broker that runs by itself."""

    is_restart = False

    def start(self, endpoint: MetricsEndpoint, end: Callable[[], None]) -> None:
        pass

    def stop(self) -> None:
        pass


def serve_file(path: Path, *, environment: Mapping[str, str]) -> int:
    """Run the broker of a configuration file. Prints errors and returns the exit code."""
    take_rights_from_others()
    with tell_failure(print_error) as outcome:
        config = load_file(path, environment=environment)
        refuse_machine(config.broker.data_directory)
        configure_logging(config)
        found = find_labels(config, hostname=socket.gethostname(), environment=environment)
        run_in_loop(config, found)
    return outcome.code


def run_in_loop(
    config: BrokerConfig, found: MergedLabels, supervision: Supervision | None = None
) -> None:
    """Run a broker with these labels in an event loop of its own. Raises OperatorError, OSError;
    UnregisteredError if it ends because the cluster has forgotten it."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run_broker(config, found, supervision or _Unsupervised()))


async def run_broker(config: BrokerConfig, found: MergedLabels, supervision: Supervision) -> None:
    """Assemble the broker, serve until a signal or a failure ends it, close it. Raises
    OperatorError."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    _end_on_signals(loop, ended)
    raise_open_files_limit()
    tls, clock, rng = load_certificates(config), LoopClock(loop), random.Random()
    audit, tokens = open_audit_log(config, clock), http_tokens(config)
    directory = DataDirectory.acquire(
        config.broker.data_directory, broker_id=config.broker_id, cluster_id=config.cluster.id
    )
    disk = _open_disk(config, loop, clock)
    network = _open_network(config, tls.peers)
    replication = _new_replication(config, clock=clock, rng=rng, disk=disk, network=network)
    webhook, metrics = _webhook(config), MetricsEndpoint(config.metrics, tls.monitoring, tokens)
    certificates = CertificateWatch(tls.all, clock=clock, files=[tokens] if tokens else ())
    failures: list[str] = []
    broker: Broker | None = None
    claimed: dict[str, socket.socket] = {}

    def end_failed(reason: str) -> None:
        failures.append(reason)
        ended.set()

    supervision.start(metrics, ended.set)
    try:
        # Before this broker contacts the cluster: a broker that cannot serve clients must not join.
        await _claim_ports(config, claimed)
        await metrics.claim()
        await network.start()
        replication.start()
        broker = Broker(
            config=config,
            clock=clock,
            rng=rng,
            disk=disk,
            replication=replication,
            labels=found.labels,
            on_failed=end_failed,
            must_be_known=supervision.is_restart and directory.identity.has_joined,
            **_kept_in(directory),
        )
        _connect(broker, network, webhook, certificates)
        _give_threads(broker, config, loop, audit)
        await metrics.serve(broker)
        certificates.start()
        await _unless(ended, broker.start())
        if not ended.is_set():
            _log.info("labels: %s", "; ".join(tell_origin(found)) or "none")
            await broker.listen(server_limits(config), claimed=claimed, tls=tls.listeners)
            settle_memory()
            metrics.set_ready(is_ready=True)
        await ended.wait()
        _raise_first(failures, is_unregistered=broker.is_unregistered)
        _log.info("ending")
        metrics.set_ready(is_ready=False)
        await broker.leave()
    finally:
        if broker is not None:
            broker.stop()
        supervision.stop()
        certificates.stop()
        webhook.stop()
        metrics.stop()
        replication.stop()
        network.stop()
        _close_all(claimed)
        disk.close()
        directory.release()


def _raise_first(failures: Sequence[str], *, is_unregistered: bool) -> None:
    """Raise the first failure of a broker, if it has failed."""
    if failures:
        raise (UnregisteredError if is_unregistered else OperatorError)(failures[0])


def _connect(
    broker: Broker, network: TcpNetwork, webhook: Webhook, certificates: CertificateWatch
) -> None:
    broker.allow_isolation(lambda is_cut: network.silence(is_silent=is_cut))
    broker.services.balancing.outages.poster = webhook
    broker.services.certificates = certificates


def _webhook(config: BrokerConfig) -> Webhook:
    return Webhook(WebhookHosts(config.security.webhook_hosts))


class _Kept(TypedDict):
    """What a broker keeps in its data directory besides logs; arguments of `Broker`."""

    directory_id: str
    cluster_id: str
    kept_labels: StoredLabels | None
    on_labelled: Callable[[StoredLabels], None]
    on_joined: Callable[[str], None]


def _kept_in(directory: DataDirectory) -> _Kept:
    return _Kept(
        directory_id=directory.identity.directory_id,
        cluster_id=directory.identity.cluster_id,
        kept_labels=read_labels(directory.path),
        on_labelled=partial(write_labels, directory.path),
        on_joined=directory.set_cluster_id,
    )


async def _claim_ports(config: BrokerConfig, claimed: dict[str, socket.socket]) -> None:
    """Claim the ports for Kafka clients: {listener: socket}. Raises OperatorError."""
    for listener in config.listeners:
        bind, key = listener.bind, listener.port_key
        claimed[listener.name] = await claim_port(bind.host, bind.port, key=key)


def _close_all(sockets: Mapping[str, socket.socket]) -> None:
    for one in sockets.values():
        one.close()


def _give_threads(
    broker: Broker,
    config: BrokerConfig,
    loop: asyncio.AbstractEventLoop,
    audit: AuditLog | None,
) -> None:
    """Long pieces of work run beside the loop."""
    if audit is not None:
        broker.services.audit = audit
        audit.start()
    post = partial(_post, loop)
    broker.services.validation.worker = WorkerThread(post, name="validation")
    if broker.services.remote_log is not None:
        work = broker.services.remote_log.reader.work
        work.worker, work.computing = DiskThreads(), DiskThreads("tier-check")
    broker.services.digesting.worker = DigestThread(
        post, rate_bytes_per_s=config.storage.digest_rate
    )


def settle_memory() -> None:
    """Tune memory management after the start.

    The cycle collector ignores the objects that exist by now, and runs rarely. The heap keeps freed
    buffers instead of returning them to the kernel, which would clear each page again."""
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # Not the GNU C library: nothing to tune, nothing lost but speed.
    mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
    mallopt(_M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)


async def _unless(ended: asyncio.Event, work: Coroutine[None, None, None]) -> None:
    """Run `work`, but cancel it as soon as `ended` is set. Raises the exception of `work`."""
    task = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(ended.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
    finally:
        task.cancel()
        waiting.cancel()


def replication_settings(config: BrokerConfig) -> ReplicationSettings:
    """The settings of [replication], and `reserve_bytes` of [storage]."""
    keys = config.replication
    return ReplicationSettings(
        heartbeat_interval_ms=keys.heartbeat_interval_ms,
        election_timeout_ms=keys.election_timeout_ms,
        election_spread_ms=keys.election_spread_ms,
        resend_timeout_ms=keys.resend_timeout_ms,
        append_bytes_max=keys.append_bytes_max,
        inflight_bytes_max=keys.inflight_bytes_max,
        inflight_count_max=keys.inflight_count_max,
        memory_bytes_max=keys.memory_bytes_max,
        tail_bytes_max=keys.tail_bytes_max,
        queue_bytes_max=keys.queue_bytes_max,
        recovery_bytes_per_s=keys.recovery_bytes_per_s,
        recovery_cross_region_bytes_per_s=keys.recovery_cross_region_bytes_per_s,
        reserve_bytes=config.storage.reserve_bytes,
        relays=keys.relays,
    )


def server_limits(config: BrokerConfig) -> ServerLimits:
    """The limits of [limits], and those on handshakes of [security]."""
    keys = config.limits
    return ServerLimits(
        request_bytes_max=keys.request_bytes_max,
        connection_count_max=keys.connection_count_max,
        connection_count_per_address_max=keys.connection_count_per_address_max,
        connection_count_per_user_max=keys.connection_count_per_user_max,
        connection_idle_ms=keys.connection_idle_ms,
        connection_requests_max=keys.connection_requests_max,
        inflight_bytes_max=keys.inflight_bytes_max,
        partial_bytes_max=keys.partial_bytes_max,
        handshake_ms=config.security.handshake_ms,
        handshake_count_max=config.security.handshake_count_max,
    )


def _new_replication(
    config: BrokerConfig,
    *,
    clock: LoopClock,
    rng: random.Random,
    disk: RealDisk,
    network: TcpNetwork,
) -> Replication:
    return Replication(
        self_id=config.broker_id,
        clock=clock,
        rng=rng,
        disk=disk,
        network=network,
        settings=replication_settings(config),
        data_directory=config.broker.data_directory,
    )


def _open_network(config: BrokerConfig, tls: PeerTls | None) -> TcpNetwork:
    return TcpNetwork(
        self_id=config.broker_id,
        cluster=config.network_name,
        host=config.rpc_bind.host,
        port=config.rpc_bind.port,
        one_way_delay_ms={peer: rtt_ms / 2 for peer, rtt_ms in config.peer_rtt_ms.items()},
        tls=tls,
    )


def _open_disk(config: BrokerConfig, loop: asyncio.AbstractEventLoop, clock: LoopClock) -> RealDisk:
    by_kernel = config.storage.flush_by == "kernel"
    post = partial(_post, loop)
    return RealDisk(post, loop if by_kernel else None, clock.at_pass_end)


def _post(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """From another thread, run a callback on the broker's thread."""
    with suppress(RuntimeError):  # The loop is closed: the process ends.
        loop.call_soon_threadsafe(callback)


def _end_on_signals(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    def end(number: signal.Signals) -> None:
        ended.set()
        # The next such signal has its default action: it ends the process.
        loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, number)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where it is installed, asyncio's own loop otherwise."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
