"""Real servers of two protocols, each in a process of its own, if they are there.

Why:    no package that the tests install has them: one is a Go program of 84 MB, one needs Node.
        Of GCS none is to be had that knows the requests of our client.
How:    `.build/servers/NAME` is the program, or the variable in `PROGRAMS` names it. HACKING says
        how to get each. Without a program its tests are left out."""

import base64
import hashlib
import hmac
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.integration.ports import free_ports

BUCKET = "logs"
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""Of every such emulator: it is no secret."""
PROGRAMS = {
    "versitygw": "STRANDLINE_VERSITYGW",
    "azurite-blob": "STRANDLINE_AZURITE_BLOB",
}
"""{program: the variable that says where it is}"""
_BUILT = Path(__file__).parents[3] / ".build" / "servers"


class Running(NamedTuple):
    """A server with an empty bucket. `url`: of a prefix in it; `credentials`: the lines of a table
    in a file of credentials."""

    url: str
    credentials: str
    port: int


def is_there(name: str) -> bool:
    """Whether this machine has the program."""
    return _place_of(name).exists()


def program(name: str) -> Path:
    """Where a server's program is; the test is left out if it is nowhere."""
    if not is_there(name):
        pytest.skip("no such server: HACKING says how to get it, .build/servers (2026-11-30)")
    return _place_of(name).resolve()


def _place_of(name: str) -> Path:
    return Path(os.environ.get(PROGRAMS[name], "") or _BUILT / name)


@contextmanager
def versitygw(root: Path, *options: str) -> Iterator[Running]:
    """S3. `options`: more words of its command."""
    path = program("versitygw")
    (root / BUCKET).mkdir(parents=True)
    (port,) = free_ports(1)
    where = ("--port", f"127.0.0.1:{port}", "--access", "test", "--secret", "test")
    with _process([str(path), *where, "--quiet", *options, "posix", str(root)], port):
        url = f"s3://{BUCKET}/PREFIX?region=us-east-1&endpoint=http://127.0.0.1:{port}"
        yield Running(url, 'access_key_id = "test"\nsecret_access_key = "test"\n', port)


@contextmanager
def azurite(root: Path) -> Iterator[Running]:
    """Azure."""
    path = program("azurite-blob")
    root.mkdir(parents=True)
    (port,) = free_ports(1)
    where = ("--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(root))
    with _process(["node", str(path), *where, "--silent", "--skipApiVersionCheck"], port):
        _make_container(port)
        here = f"http://127.0.0.1:{port}/{ACCOUNT}"
        url = f"az://{BUCKET}/PREFIX?account={ACCOUNT}&endpoint={here}"
        yield Running(url, f'account_key = "{ACCOUNT_KEY}"\n', port)


RealServers = Callable[[str], Running]
"""The server of this name in SERVERS, which runs until the session ends."""
SERVERS = {"versitygw": versitygw, "azure": azurite}


def _make_container(port: int) -> None:
    """Create the container, by a request signed with the account's key."""
    date = formatdate(usegmt=True)
    headers = f"x-ms-date:{date}\nx-ms-version:2021-08-06"
    place = f"/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
    text = "PUT" + "\n" * 12 + f"{headers}\n{place}"
    digest = hmac.digest(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256)
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/{ACCOUNT}/{BUCKET}?restype=container",
        method="PUT",
        headers={
            "x-ms-date": date,
            "x-ms-version": "2021-08-06",
            "Content-Length": "0",
            "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
        },
    )
    urllib.request.urlopen(request, timeout=30).close()


@contextmanager
def _process(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert process.poll() is None, f"{command[0]} ended"
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            raise AssertionError(f"{command[0]} did not start")
        yield
    finally:
        process.kill()
        process.wait()
