"""A pass of the scrub reads the log that there was when it began, and each byte of it once.

Source: reliability reference 3; `storage.recovery.scrubbing`."""

import pytest
from tests.storage.log_world import World


@pytest.mark.parametrize("segment_bytes", [300, 100_000])
def test_a_pass_ends_where_the_log_ended_when_it_began(segment_bytes: int) -> None:
    """A pass over a log that grows faster than the scrub would never end."""
    world = World(segment_bytes=segment_bytes)
    size_bytes = sum(len(world.append()) for _ in range(12))
    world.flush()
    scrub = world.log.mending.scrub(world.log.start_index)
    scrubbed_bytes = 0
    while scrubbed_bytes < size_bytes - 1:
        scrubbed_bytes += scrub.step(1)
    for _ in range(12):
        world.append()
    world.flush()
    while count := scrub.step(1):
        scrubbed_bytes += count
    assert scrubbed_bytes == size_bytes
    assert not scrub.gaps
