"""What is done where mending meets more damage than it came for. Source: decision 0007."""

import asyncio
from unittest.mock import Mock

from strandline.base.errors import StorageError
from strandline.model.ids import GroupId
from strandline.replication.repairs import Repairs


def test_what_is_found_damaged_while_a_segment_is_written_anew_is_looked_for() -> None:
    """It is in none of the known gaps: the same would be refused again and again."""
    repairs = Repairs(Mock())
    replica = Mock(group=GroupId(1), failed=None)
    repairs._gaps[replica.group] = [Mock()]
    damage = StorageError("/logs/t-0/00000000000000000000-0-0.log", 9, expected="a", found="b")
    rewrite = Mock(step=Mock(side_effect=damage))
    assert not asyncio.run(repairs._rewrite(replica, rewrite))
    assert repairs._suspects == {replica.group: damage.path}
    rewrite.abandon.assert_called_once()
