"""Serves the brokers of a machine until a signal ends them: `strandline serve --cores N`.

How:    The supervisor checks the file, its certificates and tokens, the machine's ports and its
        data directory before it starts a process. It runs the labels' command once.
            SIGTERM or SIGINT ends all brokers in order; a second one ends them at once.
Owns:   the machine's data directory, its HTTP port.
Source: decision 0071; docs/operating/cores.md."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from strandline.base.errors import OperatorError
from strandline.broker.operations.certificate_watch import CertificateWatch
from strandline.cli.machine.directory import MachineDirectory
from strandline.cli.machine.endpoint import MachineEndpoint
from strandline.cli.machine.supervisor import Supervisor
from strandline.cli.machine.wire import Order
from strandline.cli.output import print_error
from strandline.cli.server.broker_file import read_file
from strandline.cli.server.certificates import http_tokens, load_certificates, monitoring_tls
from strandline.cli.server.failures import tell_failure
from strandline.cli.server.file_rights import take_rights_from_others
from strandline.cli.server.labels import find_machine_labels, tell_origin
from strandline.cli.server.logs import configure_logging
from strandline.cli.server.open_files import raise_open_files_limit
from strandline.config.broker import BrokerConfig
from strandline.config.cores import ID_MARK, broken_machine_rules, derive_brokers
from strandline.config.load import load_broker_config
from strandline.network.loop_clock import LoopClock

NAME = "machine"
"""In place of a broker's id, on the supervisor's lines of the log."""

_log = logging.getLogger("strandline.machine")


def serve_machine(path: Path, *, cores: int, environment: Mapping[str, str]) -> int:
    """Run the brokers of a machine by one file. Prints errors and returns the exit code."""
    take_rights_from_others()
    with tell_failure(print_error) as outcome:
        text = read_file(path)
        config = load_broker_config(text, file=str(path), environment=environment)
        brokers = derive_machine(config, cores, file=str(path))
        file = config.log.file.replace(ID_MARK, NAME)
        configure_logging(replace(config, log=replace(config.log, file=file)), name=NAME)
        for broker in brokers:
            load_certificates(broker)
        directory = MachineDirectory.acquire(
            config.broker.data_directory,
            brokers=[one.broker.id for one in brokers],
            seeds=[one.id for one in config.seeds],
        )
        try:
            found = find_machine_labels(
                config, hostname=socket.gethostname(), environment=environment
            )
            order = Order(
                text=text,
                file=str(path),
                cores=cores,
                index=0,
                labels=found.labels.as_dict(),
                origin={**found.origin},
            )
            _log.info("labels: %s", "; ".join(tell_origin(found)))
            _tell_left_out(directory)
            asyncio.run(_serve(config, brokers, order))
        finally:
            directory.release()
    return outcome.code


def derive_machine(config: BrokerConfig, cores: int, *, file: str) -> tuple[BrokerConfig, ...]:
    """The configurations of a machine's brokers. Raises OperatorError for the first rule of
    machines that the file breaks."""
    for place, reason in broken_machine_rules(config, cores):
        raise OperatorError(f"{file}: {place}: {reason}")
    return derive_brokers(config, cores)


def orders_of(order: Order, brokers: Sequence[BrokerConfig]) -> dict[int, Order]:
    """{broker: the order for its process}."""
    cpus = sorted(os.sched_getaffinity(0)) if brokers[0].cores.pin else [None]
    return {
        broker.broker.id: msgspec.structs.replace(order, index=index, cpu=cpus[index % len(cpus)])
        for index, broker in enumerate(brokers)
    }


async def _serve(config: BrokerConfig, brokers: Sequence[BrokerConfig], order: Order) -> None:
    raise_open_files_limit()
    loop = asyncio.get_running_loop()
    clock, ended = LoopClock(loop), asyncio.Event()
    tls, tokens = monitoring_tls(config), http_tokens(config)
    supervisor = Supervisor(orders_of(order, brokers), clock=clock)
    _end_on_signals(loop, ended, supervisor)
    endpoint = MachineEndpoint(
        config.metrics, brokers, supervisor, clock=clock, host=order.labels["host"]
    )
    certificates = CertificateWatch(
        () if tls is None else (tls,), clock=clock, files=() if tokens is None else (tokens,)
    )
    try:
        await endpoint.start(tls, tokens)
        certificates.start()
        supervisor.start()
        await ended.wait()
        _log.info("ending")
    finally:
        await supervisor.end()
        certificates.stop()
        endpoint.stop()


def _end_on_signals(
    loop: asyncio.AbstractEventLoop, ended: asyncio.Event, supervisor: Supervisor
) -> None:
    def end() -> None:
        if ended.is_set():
            supervisor.kill()
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)


def _tell_left_out(directory: MachineDirectory) -> None:
    for one in directory.left_out:
        _log.warning(
            "%s is of broker %d, which does not run here and has no replicas: `strandline broker "
            "unregister %d`, and remove the directory",
            one.directory,
            one.broker,
            one.broker,
        )
