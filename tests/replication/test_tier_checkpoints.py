"""A checkpoint that fills a segment is not replaced by its like for ever.

Why:    with `local.retention.bytes=0` a checkpoint is the oldest thing that the log keeps:
        retention asks for the next one, so that it can remove it, and then again.
Source: decision 0057."""

from tests.replication.tier_model import Group


def settle(group: Group) -> None:
    """Everything that the leader appended is durable everywhere, and committed."""
    for member in group.members:
        if member is not group.leader:
            group.replicate(member)
        group.flush(member)
    group.advance()
    group.leader.tier.maintain()


def ask(group: Group, freed_bytes: int) -> int:
    """Retention asks for a checkpoint that would free so many bytes; the markers appended."""
    before = len(group.leader.log.entries)
    group.leader.tier.want_checkpoint(freed_bytes=freed_bytes)
    group.run_soon(group.leader)
    settle(group)
    return len(group.leader.log.entries) - before


def test_what_frees_no_more_than_the_last_checkpoint_and_the_next_one_take_is_left() -> None:
    group = Group()
    settle(group)
    assert ask(group, 1 << 20) == 1
    size = len(group.leader.log.entries[-1].payload or b"")
    assert size > 0
    assert ask(group, size) == 0, "the segment has that checkpoint, and nothing else"
    assert ask(group, 4 * size) == 1
