"""Secrets are in a file of their own that no other user may read, and never in an error."""

import asyncio
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.config.bucket_urls import parse_bucket
from strandline.tiered.objects.credentials import CredentialsFile
from strandline.tiered.objects.remote import RemoteBackend
from strandline.tiered.objects.store import StoreError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "buckets.toml"
    path.touch(mode=0o600)
    return path


def test_each_bucket_has_its_own(file: Path) -> None:
    file.write_text('[east]\naccess_key_id = "a"\nsecret_access_key = "b"\n[west]\nsas_key = "c"\n')
    credentials = CredentialsFile(str(file))
    assert credentials.read("east", "s3") == {"access_key_id": "a", "secret_access_key": "b"}
    assert credentials.read("west", "az") == {"sas_key": "c"}
    assert credentials.read("south", "gs") == {}


def test_without_a_file_the_environment_has_them() -> None:
    assert CredentialsFile().read("east", "s3") == {}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_read_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(OperatorError, match="chmod 600"):
        CredentialsFile(str(file)).read("east", "s3")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[east]\naccess_key = "topsecret"\n', "has the unknown key 'access_key'"),
        ("[east]\naccess_key_id = 5\n", "access_key_id must be text in quotes"),
        ('east = "topsecret"\n', "east must be a table"),
        ("[east]\naccess_key_id = topsecret\n", "is not TOML"),
        ('[east]\nsas_key = "topsecret"\n', "credentials of s3:// are access_key_id"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(file: Path, text: str, reason: str) -> None:
    file.write_text(text)
    with pytest.raises(OperatorError) as raised:
        CredentialsFile(str(file)).read("east", "s3")
    assert reason in str(raised.value)
    assert "topsecret" not in str(raised.value)
    assert str(file) in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="No such file"):
        CredentialsFile(str(tmp_path / "none")).read("east", "s3")


@pytest.mark.parametrize("host", ["169.254.169.254", "metadata.google.internal"])
def test_a_machine_without_credentials_and_without_a_role_says_so(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    url = parse_bucket("east=s3://log-east/prod?region=us-east-1")
    backend = RemoteBackend(url, CredentialsFile(), timeout_ms=100)

    def refuse() -> None:
        raise OSError(f"Error performing PUT http://{host}/latest/api/token in 5 ms: no route")

    monkeypatch.setattr(backend, "_open", refuse)
    with pytest.raises(StoreError, match="no credentials in a file or in the environment"):
        asyncio.run(backend.delete(["a"]))
