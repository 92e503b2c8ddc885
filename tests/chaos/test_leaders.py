"""Who says in its log that it leads is understood, as brokers write it."""

import logging
from pathlib import Path
from typing import Any, cast

import pytest
from chaos.brokers import Brokers, Led

from strandline.cli.server.logs import LineFormatter


@pytest.mark.parametrize("as_json", [False, True])
def test_who_leads_is_taken_from_what_brokers_log(tmp_path: Path, *, as_json: bool) -> None:
    brokers = Brokers(tmp_path, cast(Any, None), frugal=0)
    for broker, text in (
        (1, "%s: leads epoch %d"),
        (1, "%s: led epoch %d"),
        (3, "%s: leads epoch %d"),
        (3, "broker 1 says that %s: leads epoch %d no more"),
    ):
        record = logging.LogRecord(
            "strandline.replication", logging.INFO, __file__, 1, text, ("orders-3", 7), None
        )
        line = LineFormatter(broker_id=broker, as_json=as_json).format(record)
        with brokers.log(broker).open("a") as log:
            log.write(f"{line}\n")
    for broker in (2, 4, 5):
        brokers.log(broker).touch()
    assert brokers.leaders() == [Led(1, "orders-3", 7), Led(3, "orders-3", 7)]
