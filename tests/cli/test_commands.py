"""Errors and exit codes of commands; records in and out; configuration, version and help."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import pytest
import typer
from tests.cli.command_line import CONFIG, Run, cluster, run, stdin
from tests.client.fake_cluster import (
    FakeCluster,
)
from typer._coercion import build_runtime_param
from typer.testing import CliRunner

from strandline.cli import parameters
from strandline.cli.options import find_bootstrap
from strandline.cli.output import program
from strandline.protocol.errors import Error
from strandline.security.authority import Authority

__all__ = ["cluster", "run", "stdin"]  # The fixtures.


def test_a_refusal_is_one_line_and_exit_code_1(run: Run, cluster: FakeCluster) -> None:
    cluster.add_topic("orders", 1)
    code, out, err = run("topic", "create", "orders")
    assert (code, out) == (1, "")
    assert err.startswith("error: topic orders: ") and err.endswith("(TOPIC_ALREADY_EXISTS)\n")
    assert run("topic", "delete", "payments")[2] == (
        "error: topic payments does not exist; see `strandline topic list`\n"
    )


def test_a_cluster_that_is_not_there_is_exit_code_3(run: Run) -> None:
    code, out, err = run("topic", "list", "-b", "127.0.0.1:1", "--timeout", "0.1")
    assert (code, out) == (3, "")
    assert err == "error: cannot reach the cluster: 127.0.0.1:1: connection refused\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("topic", "list", "-b", "host:port"), "--bootstrap must look like host:port"),
        (("topic", "create", "x", "-c", "retention.ms"), ": expected key=value"),
        (("produce", "x", "--acks", "2"), "--acks '2': expected 0, 1 or all"),
        (
            ("produce", "x", "-z", "zip"),
            "--compression 'zip': expected none, gzip, snappy, lz4 or zstd",
        ),
        (("dev", "status"), "no cluster here; to create one: strandline dev start"),
        (("dev", "stop"), "no cluster here; to create one: strandline dev start"),
        (("dev", "broker", "kill", "1"), "no cluster here; to create one: strandline dev start"),
        (("dev", "start", "--regions", "east=x"), "--regions: 'east=x': expected name=brokers"),
        (("dev", "start", "--rtt", "east-nowhere=3"), "--rtt: 'east-nowhere' is not a link"),
        (("serve", "--config", "nowhere.toml"), "nowhere.toml: cannot read: No such file"),
        (("config", "check", "nowhere.toml"), "nowhere.toml: cannot read: No such file"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_1(
    run: Run, arguments: tuple[str, ...], reason: str
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith("error: ") and err.count("\n") == 1
    assert reason in err


@pytest.mark.parametrize(
    "arguments", [("topc",), ("topic", "create"), ("dev", "broker", "kill", "one"), ("serve",)]
)
def test_a_wrong_command_line_is_exit_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert err.startswith("Usage: strandline")


# ---- records -------------------------------------------------------------------------------------


def test_lines_become_records_and_records_lines(
    run: Run, cluster: FakeCluster, stdin: Callable[[bytes], None]
) -> None:
    cluster.add_topic("orders", 1)
    stdin(b"one\ntwo\r\n\nlast without an end")
    code, out, _ = run("produce", "orders")
    assert (code, out) == (0, "orders-0: 4 records at 0 to 3\n")
    code, out, _ = run("consume", "orders", "-e")
    assert (code, out) == (0, "one\ntwo\n\nlast without an end\n")
    assert run("consume", "orders", "-n", "1", "--from", "1")[1] == "two\n"
    assert run("consume", "orders", "-e", "--from", "latest")[1] == ""


def test_keys_headers_and_bytes_that_are_no_text(
    run: Run, cluster: FakeCluster, tmp_path: Path
) -> None:
    cluster.add_topic("orders", 1)
    (tmp_path / "lines").write_bytes(b"k1\tv1\nno separator\nk\xff\t\xfe\n")
    code, out, _ = run(
        "produce", "orders", "-f", "lines", "-K", "\\t", "-H", "a=b", "--json", "-z", "gzip"
    )
    assert code == 0
    assert json.loads(out) == {
        "topic": "orders",
        "records": 3,
        "partitions": [{"partition": 0, "records": 3, "first_offset": 0, "last_offset": 2}],
    }
    lines = run("consume", "orders", "-e", "--json")[1].splitlines()
    records = [json.loads(line) for line in lines]
    assert [one["offset"] for one in records] == [0, 1, 2]
    assert (records[0]["key"], records[0]["value"]) == ("k1", "v1")
    assert (records[1]["key"], records[1]["value"]) == (None, "no separator")
    assert (records[2]["key_base64"], records[2]["value_base64"]) == ("a/8=", "/g==")
    assert records[0]["headers"] == [{"key": "a", "value": "b"}]
    assert run("consume", "orders", "-n", "1", "--keys")[1] == "k1\tv1\n"


def test_a_header_whose_name_is_no_text(run: Run, cluster: FakeCluster, tmp_path: Path) -> None:
    """The shell hands such bytes to Python as surrogates."""
    cluster.add_topic("orders", 1)
    (tmp_path / "lines").write_bytes(b"v1\n")
    name = b"\xff\xfe".decode(errors="surrogateescape")
    assert run("produce", "orders", "-f", "lines", "-H", f"{name}=b")[0] == 0
    (record,) = run("consume", "orders", "-e", "--json")[1].splitlines()
    assert json.loads(record)["headers"] == [{"key_base64": "//4=", "value": "b"}]


def test_a_topic_that_is_not_there_takes_no_records(
    run: Run, cluster: FakeCluster, stdin: Callable[[bytes], None]
) -> None:
    stdin(b"x\n")
    code, _, err = run("produce", "orders")
    assert code == 1 and "topic orders does not exist" in err


def test_a_batch_that_is_too_large_is_one_line(
    run: Run, cluster: FakeCluster, stdin: Callable[[bytes], None]
) -> None:
    cluster.add_topic("orders", 1)
    cluster.faults["Produce"] = [int(Error.MESSAGE_TOO_LARGE)]
    stdin(b"x\n")
    code, _, err = run("produce", "orders")
    assert code == 1 and err.endswith("(MESSAGE_TOO_LARGE)\n") and err.count("\n") == 1


def test_a_place_to_begin_that_makes_no_sense_is_refused(run: Run, cluster: FakeCluster) -> None:
    cluster.add_topic("orders", 1)
    code, _, err = run("consume", "orders", "--from", "yesterday")
    assert code == 1 and "expected earliest, latest, an offset" in err


def test_a_place_to_begin_beyond_the_end_is_said(
    run: Run, cluster: FakeCluster, stdin: Callable[[bytes], None]
) -> None:
    cluster.add_topic("orders", 2)
    stdin(b"one\ntwo\n")
    assert run("produce", "orders", "-p", "1")[0] == 0
    for more in ((), ("-e",)):
        assert run("consume", "orders", "--from", "3", *more) == (
            1, "", "error: --from 3 is beyond the end of topic orders: partition 0 ends at 0, "
            "partition 1 ends at 2\n",
        )  # fmt: skip
    assert run("consume", "orders", "--from", "1", "-e") == (
        0, "two\n", "note: --from 1: partition 0 ends at 0, and is read from there\n",
    )  # fmt: skip
    assert run("consume", "orders", "--from", "2", "-p", "1", "-e") == (0, "", "")


def test_a_time_that_no_record_has_reached_is_said(run: Run, cluster: FakeCluster) -> None:
    cluster.add_topic("orders", 1)
    assert run("consume", "orders", "--from", "@99999999999999", "-e") == (
        0, "", "note: --from @99999999999999: topic orders has no record of that time or later, "
        "and is read from its end\n",
    )  # fmt: skip


# ---- configuration, version, help ----------------------------------------------------------------


def test_config_check_tells_every_mistake(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broker.toml").write_text(CONFIG)
    assert run("config", "check", "broker.toml")[:2] == (
        0,
        "broker.toml: broker 1: no mistakes\n",
    )
    (tmp_path / "broker.toml").write_text(CONFIG + '[log]\nlevle = "x"\nlevel = "x"\n')
    code, out, err = run("config", "check", "broker.toml")
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "error: broker.toml: [log] levle: unknown key (did you mean level?)",
        "error: broker.toml: [log] level: must be debug, info, warning or error, not 'x'",
    ]
    code, out, _ = run("config", "check", "broker.toml", "--json")
    assert code == 1
    assert json.loads(out)["mistakes"][0] == {
        "source": "broker.toml",
        "key": "[log] levle",
        "reason": "unknown key (did you mean level?)",
    }


def test_config_check_reads_the_certificates_too(run: Run, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files, other = authority.issue("a"), authority.issue("b")

    def configure(key: Path) -> None:
        (tmp_path / "broker.toml").write_text(
            "[broker]\nid = 1\ndata_directory = '/d'\n[cluster]\nseeds = ['1@127.0.0.1:33145']\n"
            "[[listener]]\nname = 'A'\nbind = '127.0.0.1:2'\nprotocol = 'SSL'\n"
            f"certificate = '{files.certificate}'\nprivate_key = '{key}'\n"
        )

    configure(files.key)
    assert run("config", "check", "broker.toml")[0] == 0
    configure(other.key)
    code, _, err = run("config", "check", "broker.toml")
    assert code == 1
    assert err.startswith(f"error: broker.toml: [[listener]] A: the key in {other.key} is not the")


def test_config_check_reads_the_files_of_users_and_of_buckets(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broker.toml").write_text(
        CONFIG + "[metrics]\nport = 1\ntokens_file = 'tokens'\n"
        "[access]\nusers_file = 'users'\n[tiered]\ncredentials_file = 'buckets'\n"
        "buckets = ['east=s3://a/b?region=r', 'west=s3://c/d?region=r']\n"
    )
    for name in ("users", "buckets", "tokens"):
        (tmp_path / name).touch(mode=0o644)
    code, _, err = run("config", "check", "broker.toml")
    assert code == 1
    assert err.splitlines() == [
        "error: broker.toml: [access] users_file: users: other users may use it: chmod 600 users",
        "error: broker.toml: [metrics] tokens_file: tokens: other users may use it: chmod 600 "
        "tokens",
        "error: broker.toml: [tiered] credentials_file: buckets: other users may read or write it: "
        "run chmod 600 buckets",
    ]
    for name in ("users", "buckets", "tokens"):
        (tmp_path / name).chmod(0o600)
    assert run("config", "check", "broker.toml")[0] == 0


def test_config_check_tells_who_gives_each_label(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broker.toml").write_text(CONFIG + '[broker.labels]\nregion = "east"\n')
    monkeypatch.setenv("STRANDLINE_BROKER__LABELS__OTHER", "disk=ssd")
    assert run("config", "check", "broker.toml")[1].splitlines()[1:] == [
        "label region=east, by [broker.labels] region",
        "label disk=ssd, by environment STRANDLINE_BROKER__LABELS__OTHER",
    ]
    told = json.loads(run("config", "check", "broker.toml", "--json")[1])
    assert told["labels"] == {"region": "east", "disk": "ssd"}
    assert told["origin"]["region"] == "[broker.labels] region"
    monkeypatch.setenv("STRANDLINE_BROKER__LABELS__OTHER", "disk")
    code, _, err = run("config", "check", "broker.toml")
    assert code == 1
    assert err.startswith("error: environment STRANDLINE_BROKER__LABELS__OTHER, line 1: 'disk' is")


def test_the_reference_is_written_where_it_is_wanted(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("config", "reference", "--write", "pages", "--json")
    assert code == 0
    assert sorted(Path(one).name for one in json.loads(out)["written"]) == [
        "apis.md",
        "broker-config.md",
        "cli.md",
        "kafka-broker-config.md",
        "metrics.md",
        "topic-config.md",
    ]


def test_the_version_is_printed(run: Run) -> None:
    assert run("version")[1].startswith("strandline 0.")
    assert set(json.loads(run("version", "--json")[1])) == {"strandline", "python", "platform"}


def printed_by(code: str) -> str:
    """The output of an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys, contextlib, io\n"
        "from strandline.cli.main import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main(['--help'])\n"
        "slow = {'asyncio', 'rich', 'msgspec', 'uvloop', 'cramjam', 'tomllib', 'pyspark'}\n"
        "print(sorted(slow & set(sys.modules)))\n"
    )
    assert printed_by(code) == "[]\n"


def test_the_first_command_in_an_outage_imports_no_model_of_placement() -> None:
    """Imports are most of the time of `cluster status`."""
    code = (
        "import sys\n"
        "import strandline.cli.main, strandline.cli.text.status_page\n"
        "slow = ('asyncio', 'strandline.raft', 'strandline.placement.survival.replicas',\n"
        "        'strandline.placement.topology', 'strandline.placement.solver')\n"
        "print([one for one in slow if one in sys.modules])\n"
    )
    assert printed_by(code) == "[]\n"


def test_plain_parameters_are_read_without_pydantic() -> None:
    """Importing it takes a quarter of the CPU time of `cluster status`."""
    code = (
        "import sys, contextlib\n"
        "from strandline.cli.main import main\n"
        "for arguments in (['cluster', 'status', '-b', '127.0.0.1:1', '--timeout', '0.1'],\n"
        "                  ['group', 'describe', 'g', '-b', '127.0.0.1:1', '--timeout', '1']):\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        main(arguments)\n"
        "print('pydantic' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert done.stderr.count("error: ") == 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("5", 5),
        ("-3", -3),
        ("007", 7),
        ("+5", 5),
        ("1_0", None),
        ("x", None),
        ("", None),
        ("9", None),
        ("1" * 25, None),
        ("5.0", None),
    ],
)
def test_a_number_is_read_as_typer_reads_it(text: str, wanted: int | None) -> None:
    """With typer's own reader, and with the fast one: the same value, or the same refusal."""
    app = typer.Typer()

    @app.command()
    def take(
        number: Annotated[int, typer.Option(min=-5, max=8)],
        names: Annotated[list[str] | None, typer.Argument()] = None,
        seconds: float = 3,
    ) -> None:
        typer.echo(f"{number!r} {names!r} {seconds!r}")

    answers = []
    for reader in (build_runtime_param, parameters._reader):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(typer.core, "build_runtime_param", reader)
            done = CliRunner().invoke(app, ["a", "b", f"--number={text}", "--seconds", "2.5"])
            plain = CliRunner().invoke(app, [f"--number={text}"])
        answers.append((done.exit_code, done.output, plain.exit_code, plain.output))
    assert answers[0] == answers[1]
    if wanted is not None:
        assert answers[0][1].startswith(f"{wanted} ['a', 'b'] 2.5")


def test_the_end_of_a_drill_imports_no_drill() -> None:
    code = (
        "import sys\n"
        "from types import SimpleNamespace as Fake\n"
        "from strandline.cli.commands import drill_cancel\n"
        "client = Fake(metadata=lambda _: Fake(topics=['orders', 'strandline-drill-0a']))\n"
        "print(drill_cancel._drill_topics(client), 'strandline.cli.drill.region' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['strandline-drill-0a'] False\n"


def test_the_local_cluster_is_found_without_saying_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from strandline.cli.dev.cluster_file import ClusterDirectory
    from strandline.cli.dev.plan import Plan, PlannedBroker

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STRANDLINE_DEV_DIR", raising=False)
    assert find_bootstrap() == "127.0.0.1:9092"
    broker = PlannedBroker(id=1, region="east", kafka_port=21_000, rpc_port=21_100)
    for name in ("strandline-dev", "other"):
        ClusterDirectory(tmp_path / name).write(Plan(cluster_id="c", brokers=(broker,)))
    assert find_bootstrap() == "127.0.0.1:21000"
    monkeypatch.setenv("STRANDLINE_DEV_DIR", str(tmp_path / "nothing"))
    assert find_bootstrap() == "127.0.0.1:9092"


def test_output_to_a_reader_that_is_gone_is_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m strandline.cli.main config reference --write {tmp_path} | true",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr


def test_a_command_to_type_next_begins_with_what_runs_this_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed = tmp_path / "a b" / "strandline"
    installed.parent.mkdir()
    installed.write_text("#!/bin/sh\n")
    installed.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(installed)])
    monkeypatch.setenv("PATH", str(installed.parent))
    assert program() == "strandline"
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == f"'{installed}'"
    monkeypatch.setattr(sys, "argv", ["/somewhere/strandline/cli/main.py"])
    assert program() == f"{sys.executable} -m strandline.cli.main"


def test_config_check_shows_the_brokers_of_a_machine(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broker.toml").write_text(CONFIG + "[metrics]\nport = 9404\n")
    code, out, _ = run("config", "check", "broker.toml", "--cores", "2")
    assert code == 0
    assert out.splitlines() == [
        "broker.toml: brokers 1,2: no mistakes",
        "broker 1: PLAINTEXT 127.0.0.1:9092, brokers 127.0.0.1:33145, HTTP 127.0.0.1:9405, "
        "/data/broker-1",
        "broker 2: PLAINTEXT 127.0.0.1:9093, brokers 127.0.0.1:33146, HTTP 127.0.0.1:9406, "
        "/data/broker-2",
    ]
    assert json.loads(run("config", "check", "broker.toml", "--cores", "2", "--json")[1])[
        "brokers"
    ] == [1, 2]
    (tmp_path / "broker.toml").write_text(CONFIG + "[metrics]\nport = 9093\n")
    assert run("config", "check", "broker.toml")[0] == 0
    code, _, err = run("config", "check", "broker.toml", "--cores", "2")
    assert code == 1 and err.startswith("error: broker.toml: [listener] kafka_port: ")
