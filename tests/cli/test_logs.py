"""What a broker says: one line per event, whatever happened."""

import json
import logging
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.cli.server.logs import LineFormatter, configure_logging
from strandline.config.load import load_broker_config

CONFIG = '[broker]\nid = 3\ndata_directory = "/d"\n[cluster]\nseeds = ["1@127.0.0.1:1"]\n'


def record_of(text: str, *, error: Exception | None = None) -> logging.LogRecord:
    record = logging.LogRecord("strandline.network", logging.WARNING, "", 0, text, ("a b",), None)
    record.created = 1_700_000_000.0425
    if error is not None:
        record.exc_info = (type(error), error, None)
    return record


def test_a_line_is_key_value_pairs_quoted_where_needed() -> None:
    line = LineFormatter(broker_id=3, as_json=False).format(record_of("lost %s"))
    assert line == (
        'time=2023-11-14T22:13:20.042Z level=warning broker=3 room=network event="lost a b"'
    )


def test_json_has_the_same_fields_and_a_traceback_stays_on_the_line() -> None:
    line = LineFormatter(broker_id=3, as_json=True).format(
        record_of("lost %s", error=ValueError("x\ny"))
    )
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.042Z",
        "level": "warning",
        "broker": 3,
        "room": "network",
        "event": "lost a b",
        "cause": "ValueError: x\ny",
    }


@pytest.fixture
def root_logger() -> "logging.Logger":
    return logging.getLogger()


def test_lines_of_the_level_go_to_the_file(tmp_path: Path, root_logger: logging.Logger) -> None:
    kept = root_logger.handlers[:], root_logger.level
    path = tmp_path / "broker.log"
    try:
        configure_logging(
            load_broker_config(CONFIG + f'[log]\nlevel = "warning"\nfile = "{path}"\n', file="f")
        )
        logging.getLogger("strandline.raft").info("quiet")
        logging.getLogger("strandline.raft").warning("loud")
        (handler,) = root_logger.handlers
        handler.close()
        assert isinstance(handler, logging.StreamHandler)
        handler.stream.close()
    finally:
        root_logger.handlers[:], root_logger.level = kept[0], kept[1]
    assert path.read_text().splitlines()[0].endswith("room=raft event=loud")
    assert path.read_text().count("\n") == 1


def test_a_file_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    config = load_broker_config(CONFIG + f'[log]\nfile = "{tmp_path}"\n', file="f")
    with pytest.raises(OperatorError, match=r"\[log\] file: cannot append to .*: Is a directory"):
        configure_logging(config)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_name_forges_no_line_and_steers_no_terminal(as_json: bool) -> None:
    record = record_of("client %s")
    record.args = ("\x1b[2J\x9b31m\nlevel=error\x85x\u2028y\u202e",)
    line = LineFormatter(broker_id=3, as_json=as_json).format(record)
    assert line.splitlines() == [line]
    assert not {"\x1b", "\x9b", "\x85", "\u2028", "\u202e"} & set(line)
    assert "level=error" in line
