"""Ports that nobody has: below those that the kernel gives to clients, and apart for each run."""

import itertools
import os

from strandline.cli.dev.plan import is_port_free

FIRST, COUNT = 10_000, 20_000
STEP = 1_000
_steps = itertools.count(os.getpid() * 7)


def port_base() -> str:
    """Where a cluster of one's own may look for its ports; another place at each call."""
    return str(FIRST + next(_steps) * STEP % COUNT)


def free_ports(count: int) -> list[int]:
    """So many ports on which nobody listens."""
    start = int(port_base())
    ports = (port for port in range(start, start + STEP) if is_port_free(port))
    return list(itertools.islice(ports, count))
