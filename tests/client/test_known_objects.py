"""A collector of orphans is told of every object that a partition's log names.

Source: decisions 0058 and 0066."""

from typing import Any
from uuid import UUID

import pytest
from tests.tiered.state.entries import BUCKET, Tier, abandon, intend, intend_replace, retire

from strandline.client.operations import tier
from strandline.tiered.collection.orphans import Place


def test_an_object_on_its_way_to_replace_others_is_no_orphan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = Tier().upload(10, 20, 30).done(retire(10), intend(30, 40), intend(40, 50))
    state.done(abandon("40-50"), intend_replace("10-20", base=10, end=20, name="merged"))
    checkpoint = state.state.checkpoint()
    monkeypatch.setattr(tier, "tier_state", lambda *_, **__: checkpoint)
    client: Any = None
    found = tier.known_objects(client, Place(UUID(int=1), 0), BUCKET, cluster_id="c")
    assert set(found.names) == {"0-10", "10-20", "20-30", "30-40", "40-50", "merged"}
