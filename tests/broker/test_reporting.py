"""What a broker reports of its disk to the controller.

Source: docs/decisions/0071-cores.md, "Consequences"."""

import asyncio
from types import SimpleNamespace

import pytest

from strandline.broker.operations.reporting import Reporting
from strandline.controller.reports import Question
from strandline.model.ids import BrokerId

ONE = BrokerId(1)


@pytest.mark.parametrize(("sharers", "used", "free"), [(1, 900, 101), (2, 450, 50), (4, 225, 25)])
def test_brokers_that_share_a_disk_report_their_shares(sharers: int, used: int, free: int) -> None:
    replication = SimpleNamespace(
        self_id=ONE,
        calls=SimpleNamespace(register=lambda *_: None),
        space=lambda: (900, 101),
        replicas={},
    )
    reporting = Reporting(replication, disk_sharers=sharers)  # type: ignore[arg-type]
    found = asyncio.run(reporting.ask([ONE], Question()))
    assert (found[ONE].used_bytes, found[ONE].free_bytes) == (used, free)
