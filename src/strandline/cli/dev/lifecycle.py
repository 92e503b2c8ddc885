"""Starts, stops, kills, pauses, adds, removes and describes the brokers of a local cluster.

How:    cluster.json describes the cluster, and a pid file names each broker's process; there is no
        other state. A lock file serialises commands on one directory. A start that fails stops the
        brokers that it started, except some that only wait for others.
Owns:   the pid files, while it holds the lock.
Source: design section 10."""

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.cli.dev.cluster_file import BrokerFiles, ClusterDirectory
from strandline.cli.dev.departure import Departure
from strandline.cli.dev.plan import (
    TIERED_CHECK_SETTING,
    Plan,
    PlannedBroker,
    Settings,
    bucket_settings,
    is_port_free,
    merge_settings,
    parse_regions,
    parse_rtt,
    parse_settings,
    plan_brokers,
    plan_next_broker,
)
from strandline.cli.dev.processes import (
    ProcessMark,
    ProcessState,
    kill_processes,
    live_mark,
    read_mark,
    stop_processes,
)
from strandline.cli.dev.readiness import NotServingError, Probe, wait_serving
from strandline.cli.dev.secure_files import let_app_in
from strandline.cli.dev.spawner import Spawn, spawn_brokers
from strandline.client.wire.transport import TcpTransport, Transport
from strandline.config.broker import BrokerConfig
from strandline.config.load import load_broker_config
from strandline.network.sockets import who_has

START_TIMEOUT_MS = 60_000
STOP_GRACE_MS = 10_000
STATUS_TIMEOUT_MS = 1_000
LOG_TAIL_BYTES = 8 * 1024
LOG_LINE_CHARS_MAX = 500


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """One broker now. `pid` is None unless its process lives."""

    broker: PlannedBroker
    state: ProcessState
    pid: int | None
    is_serving: bool


@dataclass(frozen=True, slots=True)
class StartOptions:
    """What the command line asks for; None where it says nothing."""

    regions: str | None = None
    rtt: str | None = None
    port_base: int = 0
    settings: Sequence[str] = ()
    is_tiered: bool = False
    is_secure: bool = False


class LocalCluster:
    """The cluster in one directory. `spawn`, `transport` and `is_free` are the world, for tests."""

    def __init__(
        self,
        path: Path,
        *,
        spawn: Callable[[Sequence[Spawn]], None] = spawn_brokers,
        transport: Transport | None = None,
        is_free: Callable[[int], bool] = is_port_free,
        start_timeout_ms: int = START_TIMEOUT_MS,
    ) -> None:
        self.directory = ClusterDirectory(path.absolute())
        self._spawn = spawn
        self._given_transport = transport
        self._is_free = is_free
        self._start_timeout_ms = start_timeout_ms

    # ---- the whole cluster -----------------------------------------------------------------------

    def start(self, options: StartOptions, *, default_regions: str, new_id: str) -> Plan:
        """Start every broker that is down; returns once all of them serve. If there is
        no cluster, makes one with `default_regions` and the id `new_id`.

        Keeps edited configuration files."""
        with self._locked(create=True):
            recorded = self.directory.read()
            plan = self._plan(recorded, options, default_regions=default_regions, new_id=new_id)
            down = [one for one in plan.brokers if self._live(one) is None]
            if recorded is not None and plan != recorded and len(down) < len(plan.brokers):
                raise OperatorError(
                    "--rtt, --set and --tiered cannot change while brokers run; to stop them: "
                    f"strandline dev stop --dir {self.directory.path}"
                )
            edited = [] if recorded is None else self.directory.edited(recorded)
            if edited and plan != recorded:
                raise OperatorError(
                    "--rtt, --set and --tiered would overwrite your edits in "
                    f"{self.directory.files(edited[0]).config}: make the change there too, or "
                    "remove the file to have it rewritten"
                )
            self._check_ports(down)
            if plan.is_secure:
                self.directory.secure.make(plan)
            self.directory.write(plan)
            self.directory.write_configs(plan, but=edited)
            awaited = plan.brokers if down else ()
            self._start(plan, down, awaited, others=[one.id for one in plan.brokers])
            if plan.is_secure:
                let_app_in(self._transport(plan), plan)
            return plan

    def stop(self, *, remove: bool) -> list[PlannedBroker]:
        """End every broker, politely at first; returns those that had to be killed. `remove`:
        delete the directory with all data."""
        with self._locked():
            plan = self.directory.require()
            marks = {one: mark for one in plan.brokers if (mark := self._live(one)) is not None}
            killed = stop_processes(marks.values(), grace_ms=STOP_GRACE_MS)
            for broker in plan.brokers:
                self.directory.files(broker).pid.unlink(missing_ok=True)
            if remove:
                shutil.rmtree(self.directory.path, ignore_errors=True)
            return [broker for broker, mark in marks.items() if mark in killed]

    def status(self) -> tuple[Plan, list[BrokerStatus]]:
        """What every broker does now."""
        plan = self.directory.require()
        transport = self._transport(plan)
        return plan, [self._status(broker, transport) for broker in plan.brokers]

    # ---- some brokers ----------------------------------------------------------------------------

    def start_brokers(self, choose: Callable[[Plan], Sequence[PlannedBroker]]) -> list[int]:
        """Start the chosen ones that are down; returns their ids once all that are not paused
        serve."""
        with self._locked():
            plan = self.directory.require()
            chosen = choose(plan)
            marks = {one.id: self._live(one) for one in chosen}
            down = [one for one in chosen if marks[one.id] is None]
            self._check_ports(down)
            self.directory.write_configs(plan, but=self.directory.edited(plan))
            awaited = [
                one
                for one in chosen
                if (mark := marks[one.id]) is None or mark.state() is ProcessState.RUNNING
            ]
            self._start(plan, down, awaited, others=())
            return [one.id for one in down]

    def kill_brokers(self, choose: Callable[[Plan], Sequence[PlannedBroker]]) -> list[int]:
        """SIGKILL the chosen ones, all at once; returns the ids of those that lived."""
        with self._locked():
            chosen = choose(self.directory.require())
            marks = {one: mark for one in chosen if (mark := self._live(one)) is not None}
            kill_processes(marks.values())
            for broker in chosen:
                self.directory.files(broker).pid.unlink(missing_ok=True)
            return [one.id for one in marks]

    def pause_broker(self, number: int) -> None:
        """SIGSTOP: the broker holds its connections and says nothing."""
        self._signal(number, signal.SIGSTOP)

    def resume_broker(self, number: int) -> None:
        """SIGCONT."""
        self._signal(number, signal.SIGCONT)

    # ---- the set of brokers ----------------------------------------------------------------------

    def add_broker(self, region: str) -> PlannedBroker:
        """Add a broker with the next id, and start it; returns once it serves. It stays in the
        cluster's file even if its start fails."""
        with self._locked():
            plan = self.directory.require()
            if all(self._live(one) is None for one in plan.brokers):
                raise OperatorError(
                    "the cluster is stopped, and a new broker cannot join: strandline dev start "
                    f"--dir {self.directory.path}"
                )
            broker = plan_next_broker(
                plan, region, used_ids=self.directory.used_ids(), is_free=self._is_free
            )
            edited = self.directory.edited(plan)
            wider = plan.with_broker(broker)
            if wider.is_secure:
                self.directory.secure.make(wider)
            self.directory.write(wider)
            self.directory.write_configs(wider, but=edited)
            self._start(wider, [broker], [broker], others=())
            return broker

    def remove_broker(self, number: int, *, remove_data: bool) -> PlannedBroker:
        """Stop a broker that was decommissioned and is empty, unregister it, and take it out of the
        cluster's file; raises OperatorError, and changes nothing, if it is not."""
        with self._locked():
            plan = self.directory.require()
            broker = plan.broker(number)
            if len(plan.brokers) == 1:
                raise OperatorError(
                    f"broker {number} is the only one: strandline dev stop --remove"
                )
            others = [one for one in plan.brokers if one != broker]
            departure = Departure(self._transport(plan), broker, others)
            voters = departure.require_empty()
            files = self.directory.files(broker)
            mark = self._live(broker)
            if mark is not None:
                stop_processes([mark], grace_ms=STOP_GRACE_MS)
            files.pid.unlink(missing_ok=True)
            departure.unregister()
            edited = self.directory.edited(plan)
            narrower = plan.without_broker(broker, voter_ids=voters)
            self.directory.write(narrower)
            self.directory.write_configs(narrower, but=edited)
            if remove_data:
                shutil.rmtree(files.directory, ignore_errors=True)
            return broker

    # ---- inside ----------------------------------------------------------------------------------

    def _plan(
        self, recorded: Plan | None, options: StartOptions, *, default_regions: str, new_id: str
    ) -> Plan:
        if recorded is None:
            wanted = default_regions if options.regions is None else options.regions
            regions = parse_regions(wanted)
            rtt_ms = parse_rtt(options.rtt or "", regions)
            brokers = plan_brokers(regions, port_base=options.port_base, is_free=self._is_free)
            settings = self._settings(options, regions, recorded={})
            return Plan(
                cluster_id=new_id,
                brokers=brokers,
                rtt_ms=rtt_ms,
                settings=settings,
                is_secure=options.is_secure,
            )
        if options.is_secure and not recorded.is_secure:
            raise OperatorError(
                f"{self.directory.path} holds a cluster without --secure: choose another --dir, or "
                f"remove it: strandline dev stop --remove --dir {self.directory.path}"
            )
        if options.regions is not None and parse_regions(options.regions) != recorded.regions:
            has = ",".join(f"{region}={count}" for region, count in recorded.regions.items())
            raise OperatorError(
                f"{self.directory.path} holds a cluster with regions {has}: choose another "
                f"--dir, or remove it: strandline dev stop --remove --dir {self.directory.path}"
            )
        links = recorded.rtt_ms if options.rtt is None else parse_rtt(options.rtt, recorded.regions)
        settings = self._settings(options, recorded.regions, recorded=recorded.settings)
        return replace(recorded, rtt_ms=links, settings=settings)

    def _settings(
        self, options: StartOptions, regions: Iterable[str], *, recorded: Settings
    ) -> Settings:
        defaults = parse_settings([TIERED_CHECK_SETTING] if options.is_tiered else [])
        buckets = [bucket_settings(self.directory.path, regions)] if options.is_tiered else []
        wanted = parse_settings((*buckets, *options.settings))
        return merge_settings(merge_settings(defaults, recorded), wanted)

    def _check_ports(self, brokers: Sequence[PlannedBroker]) -> None:
        for broker in brokers:
            for port in (broker.kafka_port, broker.rpc_port):
                if not self._is_free(port):
                    raise OperatorError(
                        f"port {port} of broker {broker.id} is taken; {who_has(port)}"
                    )

    def _transport(self, plan: Plan) -> Transport:
        """How the cluster's brokers are reached."""
        if self._given_transport is not None:
            return self._given_transport
        return self.directory.secure.transport() if plan.is_secure else TcpTransport()

    def _start(
        self,
        plan: Plan,
        brokers: Sequence[PlannedBroker],
        awaited: Sequence[PlannedBroker],
        *,
        others: Sequence[int],
    ) -> None:
        """Start `brokers`; returns once `awaited` serve and know `others`."""
        wanted = []
        log_starts: dict[int, int] = {}
        for broker in brokers:
            files = self.directory.files(broker)
            # The broker would refuse it too, but in its log; here it is one line at once.
            config = load_broker_config(files.config.read_text(), file=str(files.config))
            _require_planned(config, broker, files)
            log_starts[broker.id] = files.log.stat().st_size if files.log.exists() else 0
            wanted.append(
                Spawn(
                    id=broker.id, config=str(files.config), log=str(files.log), pid=str(files.pid)
                )
            )
        try:
            if wanted:
                self._spawn(wanted)
            wait_serving(
                self._transport(plan),
                awaited,
                others=others,
                timeout_ms=self._start_timeout_ms,
                check_alive=lambda broker: self._require_alive(broker, log_starts),
            )
        except BaseException as error:
            if others or not isinstance(error, NotServingError):
                # No record would remain of processes that a failed or interrupted start left.
                kill_processes(mark for one in brokers if (mark := self._live(one)) is not None)
                raise
            # They may wait for others, which are started next.
            raise OperatorError(
                f"{error}; the started brokers keep running: if most brokers are down, start more"
            ) from error

    def _require_alive(self, broker: PlannedBroker, log_starts: Mapping[int, int]) -> None:
        if self._live(broker) is None:
            files = self.directory.files(broker)
            said = last_line(files.log, since=log_starts.get(broker.id, 0))
            raise OperatorError(
                f"broker {broker.id} exited while starting: {said or 'no output'} (log: "
                f"{files.log})"
            )

    def _status(self, broker: PlannedBroker, transport: Transport) -> BrokerStatus:
        mark = self._live(broker)
        state = ProcessState.ABSENT if mark is None else mark.state()
        is_serving = False
        if state is ProcessState.RUNNING:
            probe = Probe(transport, broker, timeout_ms=STATUS_TIMEOUT_MS)
            is_serving = probe.serves()
            probe.close()
        return BrokerStatus(
            broker=broker,
            state=state,
            pid=None if mark is None else mark.pid,
            is_serving=is_serving,
        )

    def _signal(self, number: int, signal_number: signal.Signals) -> None:
        broker = self.directory.require().broker(number)
        mark = read_mark(self.directory.files(broker).pid)
        if mark is None or not mark.send(signal_number):
            raise OperatorError(
                f"broker {number} is down; to start it: strandline dev broker start {number} "
                f"--dir {self.directory.path}"
            )
        wanted = ProcessState.PAUSED if signal_number == signal.SIGSTOP else ProcessState.RUNNING
        # A signal takes effect a moment later; the command returns when it has.
        for _ in range(1_000):
            if mark.state() in (wanted, ProcessState.ABSENT):
                return
            time.sleep(0.001)

    def _live(self, broker: PlannedBroker) -> ProcessMark | None:
        return live_mark(self.directory.files(broker).pid)

    @contextmanager
    def _locked(self, *, create: bool = False) -> Iterator[None]:
        path = self.directory.path
        try:
            if create:
                path.mkdir(parents=True, exist_ok=True)
            elif not path.is_dir():
                self.directory.require()
            lock = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise OperatorError(f"{path}: cannot open: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _require_planned(config: BrokerConfig, broker: PlannedBroker, files: BrokerFiles) -> None:
    """Refuse a configuration that would be another broker's; raises OperatorError."""
    for name, found, planned in (
        ("broker.id", config.broker.id, broker.id),
        ("broker.data_directory", config.broker.data_directory, str(files.data)),
        (config.listeners[0].port_key, config.listeners[0].bind.port, broker.kafka_port),
        ("rpc.port", config.rpc.port, broker.rpc_port),
    ):
        if found != planned:
            raise OperatorError(
                f"{files.config}: {name} is {found}, but broker {broker.id} of this cluster "
                f"has {planned}: restore that value, or remove the file to have it rewritten"
            )


def last_line(log: Path, *, since: int) -> str:
    """The last line that was written to a log after the position `since`; empty for none."""
    try:
        with open(log, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(since, size - LOG_TAIL_BYTES))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip()[:LOG_LINE_CHARS_MAX] if lines else ""
