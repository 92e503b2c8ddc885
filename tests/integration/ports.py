"""Ports that nobody has: below those that the kernel gives to clients, and apart for each process.

How:    a process of pytest-xdist takes every PROCESSES-th block, so that two of one run never look
        for ports in the same block; each run begins elsewhere."""

import itertools
import os

from strandline.cli.dev.plan import is_port_free

FIRST, COUNT = 10_000, 20_000
STEP = 1_000
PROCESSES = 4
BLOCKS = COUNT // STEP
_process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PROCESSES
_steps = itertools.count(os.getppid() * 7)


def port_base() -> str:
    """Where a cluster of one's own may look for its ports; another place at each call."""
    block = (next(_steps) * PROCESSES + _process) % BLOCKS
    return str(FIRST + block * STEP)


def free_ports(count: int) -> list[int]:
    """So many ports on which nobody listens."""
    start = int(port_base())
    ports = (port for port in range(start, start + STEP) if is_port_free(port))
    return list(itertools.islice(ports, count))
