"""One S3 server for all tests here, and the stores that they open."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tiered.objects.opened import Opener
from tests.tiered.objects.s3_server import CREDENTIALS, make_bucket, s3_server

BUCKET = "logs"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def s3_port() -> Iterator[int]:
    with s3_server() as port:
        make_bucket(port, BUCKET)
        yield port


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    """Opens stores of one test: in its directory, or below a prefix that no other test has."""
    file = tmp_path / "credentials.toml"
    file.write_text(f"[east]\n{CREDENTIALS}")
    file.chmod(0o600)
    return Opener(tmp_path, file, f"test-{next(_numbers)}")
