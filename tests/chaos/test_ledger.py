"""What clients write down, what they write, and what brokers are told."""

from pathlib import Path

import pytest
from chaos.brokers import render_config
from chaos.clients.command_line import parse_arguments
from chaos.clients.pace import BEHIND_MAX, Pace
from chaos.hosts import BROKERS, ChaosError
from chaos.ledger import Client, Failed, LedgerReader, LedgerWriter, Read
from chaos.records import make_value, mark_of

from strandline.config.load import load_broker_config


def test_entries_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "board-1.jsonl"
    client = Client("board-1", group="board")
    read = Read(5, 1, "orders", 0, 7, [(7, "rd-east/1/00000000")])
    writer = LedgerWriter(path, client)
    reader = LedgerReader(path)
    assert reader.read_on() == [client]
    writer.add(read)
    writer.close()
    assert reader.read_on() == [read]
    assert (reader.client, reader.all_of(Read), reader.read_on()) == (client, [read], [])


def test_an_entry_half_written_is_left_for_later(tmp_path: Path) -> None:
    path = tmp_path / "rd-east.jsonl"
    LedgerWriter(path, Client("rd-east", acks=-1)).close()
    whole = b'["Failed",1,"a","b"]\n'
    with path.open("ab", buffering=0) as file:
        reader = LedgerReader(path)
        file.write(whole[:9])
        assert len(reader.read_on()) == 1
        file.write(whole[9:])
        assert reader.read_on() == [Failed(1, "a", "b")]


def test_a_client_that_never_began_is_told_of(tmp_path: Path) -> None:
    reader = LedgerReader(tmp_path / "none.jsonl")
    assert reader.read_on() == []
    with pytest.raises(ChaosError, match=r"none\.jsonl"):
        _ = reader.client


def test_a_mark_tells_the_writer_the_number_and_every_byte() -> None:
    value = make_value("kp-all", 41)
    assert mark_of(value).startswith("kp-all/41/")
    assert mark_of(value[:-1] + b"!") != mark_of(value)
    assert mark_of(make_value("kp-all", 42)) != mark_of(value)


@pytest.mark.parametrize("value", [None, b"", b"x", b"a/b/c", b"\xff/1/x", b"a/1"])
def test_a_value_that_nobody_wrote_has_a_mark_too(value: bytes | None) -> None:
    name, number, _ = mark_of(value).split("/")
    assert name
    assert number.isdigit()


def test_the_pace_numbers_records_over_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("chaos.clients.pace.time.monotonic", lambda: now[0])
    pace = Pace([("a", 0), ("a", 1), ("b", 0)], per_second=10)
    assert pace.due() == []
    now[0] += 0.4
    assert pace.due() == [(0, "a", 0), (1, "a", 1), (2, "b", 0), (3, "a", 0)]
    now[0] += 1_000
    late = pace.due()
    assert len(late) == BEHIND_MAX
    assert late[0][0] == 4
    now[0] += 0.1
    assert [number for number, *_ in pace.due()] == [4 + BEHIND_MAX]


def test_client_programs_know_topics_and_servers() -> None:
    told = parse_arguments(["--name", "n", "--ledger", "l", "--topics", "a=2,b=1"])
    assert told.partitions == [("a", 0), ("a", 1), ("b", 0)]
    assert len(told.servers) == len(BROKERS)


def test_the_configuration_of_a_broker_is_one() -> None:
    for host in BROKERS:
        text = render_config(host, Path("/data"), preallocates=False)
        config = load_broker_config(text, file="broker.toml", environment={})
        assert config.broker_id == host.broker
        assert config.kafka_bind.host == host.address
        assert config.storage.preallocate is False
        assert len(config.cluster.seeds) == len(BROKERS)
