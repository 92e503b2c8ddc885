"""One S3 server for all tests here, and the stores that they open."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.tiered.objects.opened import BUCKET, Opener
from tests.tiered.objects.real_servers import SERVERS, RealServers, Running, is_there
from tests.tiered.objects.s3_server import CREDENTIALS, make_bucket, s3_server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def real_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServers]:
    """Starts the real server of a name, once."""
    with ExitStack() as stack:
        running: dict[str, Running] = {}

        def start(name: str) -> Running:
            if name not in running:
                root = tmp_path_factory.mktemp(name) / "root"
                running[name] = stack.enter_context(SERVERS[name](root))
            return running[name]

        yield start


@pytest.fixture(scope="session")
def moto_port() -> Iterator[int]:
    """The port of a small S3 server, which is always there, with the bucket `logs`."""
    with s3_server() as port:
        make_bucket(port, BUCKET)
        yield port


@pytest.fixture(params=["moto", *(["versitygw"] if is_there("versitygw") else [])])
def s3_port(request: pytest.FixtureRequest) -> int:
    """The port of each S3 server that is there, with the bucket `logs`."""
    if request.param == "moto":
        return int(request.getfixturevalue("moto_port"))
    return int(request.getfixturevalue("real_servers")("versitygw").port)


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    """Opens stores of one test: in its directory, or below a prefix that no other test has."""
    file = tmp_path / "credentials.toml"
    file.write_text(f"[east]\n{CREDENTIALS}")
    file.chmod(0o600)
    return Opener(tmp_path, file, f"test-{next(_numbers)}")
