"""A real S3 server in a process of its own: moto, which is right in races of conditional writes."""

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.ports import free_ports

CREDENTIALS = 'access_key_id = "test"\nsecret_access_key = "test"\n'
REGION = "us-east-1"


@contextmanager
def s3_server() -> Iterator[int]:
    """Run a server; yields its port."""
    (port,) = free_ports(1)
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _await_port(port, process)
        yield port
    finally:
        process.kill()
        process.wait()


def make_bucket(port: int, name: str) -> None:
    """Create a bucket; harmless when it is there."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{name}", method="PUT")
    urllib.request.urlopen(request, timeout=30).close()


def _await_port(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "the S3 server died"
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the S3 server did not start")
