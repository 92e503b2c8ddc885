"""What machines of several brokers log is understood, and their files are files of machines.

Source: docs/internals/chaos.md."""

import logging
from pathlib import Path
from typing import Any, cast

import pytest
from chaos.brokers import Led
from chaos.hosts import BROKERS
from chaos.machines import Machines, render_machine

from strandline.cli.server.logs import LineFormatter
from strandline.config.cores import broken_machine_rules, derive_brokers
from strandline.config.load import load_broker_config


@pytest.fixture
def made(tmp_path: Path) -> Machines:
    """Five machines of two brokers, which have logged nothing."""
    machines = Machines(tmp_path, cast(Any, None), frugal=0, cores=2)
    for host in BROKERS:
        machines.log(host.broker).touch()
    return machines


def say(machines: Machines, machine: int, broker: int | str, text: str) -> None:
    record = logging.LogRecord("strandline", logging.INFO, __file__, 1, text, (), None)
    line = LineFormatter(broker_id=broker, as_json=False).format(record)
    with machines.log(machine).open("a") as log:
        log.write(f"{line}\n")


@pytest.mark.parametrize("host", BROKERS)
def test_the_file_of_a_machine_gives_its_brokers_ids_ports_and_directories(
    made: Machines, host: Any
) -> None:
    text = render_machine(host, made.data(host.broker), preallocates=False)
    whole = load_broker_config(text, file="machine.toml", environment={})
    assert list(broken_machine_rules(whole, 2)) == []
    brokers = derive_brokers(whole, 2)
    first = 10 * host.broker
    assert [one.broker_id for one in brokers] == [first, first + 1]
    assert [one.kafka_bind.port for one in brokers] == [23_092, 23_093]
    assert {Path(one.broker.data_directory) for one in brokers} == {
        made.data_directories()[one.broker_id] for one in brokers
    }
    assert [one.id for one in whole.seeds] == [10, 20, 30, 40, 50]


def test_who_leads_is_taken_from_the_log_that_the_brokers_of_a_machine_share(
    made: Machines,
) -> None:
    say(made, 1, 11, "orders-3: leads epoch 7")
    say(made, 1, 10, "orders-1: leads epoch 2")
    say(made, 4, "machine", "broker 40 is process 7")
    assert made.leaders() == [Led(11, "orders-3", 7), Led(10, "orders-1", 2)]


@pytest.mark.parametrize(
    ("machine", "text", "is_wrong"),
    [
        (1, "broker 10 ended with exit code 0", False),
        (1, "broker 10 ended with exit code 1: no memory; it ran for 2.0 s", True),
        (1, "broker 10 was killed by SIGSEGV; it ran for 2.0 s", True),
        (1, "broker 10 was killed by SIGKILL; it ran for 2.0 s, and starts again in 0.5 s", True),
        (1, "broker 10 ended with exit code 1: data_directory /d is in use by another", False),
        (1, "broker 10 ended with exit code 1: /d: No space left on device; it ran", True),
        (2, "broker 20 ended with exit code 1: /d: No space left on device; it ran", False),
    ],
)
def test_a_broker_that_ended_by_itself_breaks_a_promise(
    made: Machines, machine: int, text: str, *, is_wrong: bool
) -> None:
    say(made, machine, "machine", text)
    made.check_ends(small_disk=2)
    assert bool(made.complaints) == is_wrong
