"""Where a broker is: from its file, a formula, and a command."""

import sys
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.cli.server import labels
from strandline.cli.server.labels import (
    find_labels,
    find_machine_labels,
    label_mistake,
    tell_origin,
)
from strandline.config.broker import BrokerConfig
from strandline.config.load import load_broker_config

FILE = """
[broker]
id = 1
data_directory = "/data"

[cluster]
seeds = ["1@127.0.0.1:33145"]

[broker.labels]
"""


def config_with(*lines: str, **environment: str) -> BrokerConfig:
    text = FILE + "\n".join(lines)
    return load_broker_config(text, file="broker.toml", environment=environment)


def domain_of(config: BrokerConfig, hostname: str) -> str:
    return find_labels(config, hostname=hostname, environment={}).labels.upgrade_domain


def script(tmp_path: Path, text: str) -> str:
    """A configuration line with a command that runs `text`."""
    path = tmp_path / "where-am-i.py"
    path.write_text(text)
    return f'command = ["{sys.executable}", "{path}"]'


def test_the_file_and_the_environment_win_over_what_the_command_prints(tmp_path: Path) -> None:
    command = script(tmp_path, 'print("# cloud\\nregion=a\\nzone=a1\\nrack=r1\\ndisk=ssd")')
    environment = {"STRANDLINE_BROKER__LABELS__RACK": "r2"}
    config = config_with(
        'zone = "b1"', 'other = ["disk=disk", "country=de"]', command, **environment
    )
    merged = find_labels(config, hostname="kafka-7", environment=environment)
    found = merged.labels
    assert (found.region, found.zone, found.rack, found.host) == ("a", "b1", "r2", "")
    assert found.free == (("country", "de"), ("disk", "disk"))
    assert found.upgrade_domain == ""
    assert tell_origin(merged) == [
        f"region=a, by [broker.labels] command {sys.executable}",
        "zone=b1, by [broker.labels] zone",
        "rack=r2, by environment STRANDLINE_BROKER__LABELS__RACK",
        "country=de, by [broker.labels] other",
        "disk=disk, by [broker.labels] other",
    ]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("OTHER", "disk", ", line 1: 'disk' is no label"),
        ("OTHER", "Disk=1", ": a label must be 1 to 63"),
        ("UPGRADE_DOMAIN_FORMULA", "ordinal % x", ": upgrade domain formula"),
    ],
)
def test_what_is_wrong_in_the_environment_is_not_blamed_on_the_file(
    name: str, value: str, says: str
) -> None:
    environment = {f"STRANDLINE_BROKER__LABELS__{name}": value}
    mistake = label_mistake(config_with('region = "a"', **environment), environment)
    assert mistake is not None
    assert mistake.startswith(f"environment STRANDLINE_BROKER__LABELS__{name}{says}")


def test_the_upgrade_domain_comes_of_the_host_unless_it_is_given() -> None:
    formula = 'upgrade_domain_formula = "ordinal % 3"'
    assert domain_of(config_with(formula), "kafka-7.example") == "1"
    told = config_with(formula, 'host = "kafka-5"')
    assert domain_of(told, "kafka-7") == "2"
    told = config_with(formula, 'upgrade_domain = "blue"')
    assert domain_of(told, "kafka") == "blue"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import sys; sys.exit('no metadata here')", "exit code 1: no metadata here"),
        ("print('region: a')", "line 1: 'region: a' is no label"),
        ("print('Region=a')", "a label must be 1 to 63 of"),
        ("print('region=a b')", "label region must be"),
    ],
)
def test_a_command_that_does_not_tell_is_said_in_one_line(
    tmp_path: Path, text: str, says: str
) -> None:
    config = config_with(script(tmp_path, text))
    with pytest.raises(OperatorError) as failure:
        find_labels(config, hostname="kafka-7", environment={})
    assert says in str(failure.value) and "\n" not in str(failure.value)
    assert str(failure.value).startswith("[broker.labels] command ")


def test_a_command_that_is_not_there_or_hangs_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OperatorError, match="cannot run"):
        find_labels(
            config_with('command = ["/no/such/command"]'), hostname="kafka-7", environment={}
        )
    monkeypatch.setattr(labels, "COMMAND_TIMEOUT_S", 0.2)
    with pytest.raises(OperatorError, match="no result after"):
        hanging = config_with(script(tmp_path, "import time; time.sleep(30)"))
        find_labels(hanging, hostname="k-1", environment={})


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('other = ["disk"]', "is no label"),
        ('other = ["broker=1"]', "may not be called 'broker'"),
        ('other = ["a=1", "a=2"]', "twice"),
        ('upgrade_domain_formula = "ordinal % x"', "upgrade domain formula"),
    ],
)
def test_what_is_wrong_is_found_before_the_broker_starts(line: str, says: str) -> None:
    mistake = label_mistake(config_with(line), {})
    assert mistake is not None and says in mistake
    config = config_with('region = "a"', 'command = ["/no/such/command"]')
    assert label_mistake(config, {}) is None


def machine(*lines: str, hostname: str = "node-7.example") -> dict[str, str]:
    """The labels of a machine's brokers."""
    config = config_with(*lines)
    return find_machine_labels(config, hostname=hostname, environment={}).labels.as_dict()


def test_the_brokers_of_a_machine_share_its_name_as_host_and_upgrade_domain(
    tmp_path: Path,
) -> None:
    name = "node-7.example"
    assert machine() == {"host": name, "upgrade_domain": name}
    given = machine('region = "east"', 'host = "r1-n7"', 'upgrade_domain_formula = "ordinal % 3"')
    assert given == {"region": "east", "host": "r1-n7", "upgrade_domain": "1"}
    command = script(tmp_path, 'print("host=cloud-7\\nupgrade_domain=2")')
    assert machine(command) == {"host": "cloud-7", "upgrade_domain": "2"}


@pytest.mark.parametrize("name", ["localhost", "localhost.localdomain", "", "a_b!", "x" * 64])
def test_a_name_that_tells_no_machine_is_no_host(name: str) -> None:
    with pytest.raises(OperatorError, match=r"give \[broker.labels\] host"):
        machine(hostname=name)
    assert machine('host = "node-7"', hostname=name)["host"] == "node-7"
