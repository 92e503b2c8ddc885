"""A file of users: written, changed, and refused where it cannot be right."""

from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.model.access import ScramSecret
from strandline.security.sasl.secrets import SecretBook, secret_from_password
from strandline.security.sasl.users_file import read_users_file, write_users

SHA256 = "SCRAM-SHA-256"


def secret(user: str, password: str = "p", mechanism: str = SHA256) -> ScramSecret:
    return secret_from_password(user, mechanism, password, iterations=4_096)


def test_users_are_added_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "users.jsonl"
    first, second, other = secret("alice"), secret("bob"), secret("alice", "new")
    write_users(path, [first, second])
    assert path.stat().st_mode & 0o777 == 0o600
    write_users(path, [other])
    assert read_users_file(path) == {("alice", SHA256): other, ("bob", SHA256): second}
    assert b"new" not in path.read_bytes()


def test_the_clusters_secret_counts_first(tmp_path: Path) -> None:
    path = tmp_path / "users.jsonl"
    write_users(path, [secret("alice"), secret("bob")])
    newer = secret("alice", "new")
    book = SecretBook(lambda: {("alice", SHA256): newer}, read_users_file(path))
    assert book.find("alice", SHA256) == (newer, True)
    assert book.find("bob", SHA256)[1] and book.find_any("bob")[1]
    assert not book.find("carol", SHA256)[1]


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        (b"", 0o640, "other users may use it: chmod 600"),
        (b"alice:secret\n", 0o600, "line 1 is no user"),
        (b'{"user": "a"}\n', 0o600, "line 1 is no user"),
        (
            b'{"user":"a","mechanism":"MD5","iterations":1,"salt":"","stored_key":"",'
            b'"server_key":""}\n',
            0o600,
            "line 1 has no user and mechanism that are known",
        ),
    ],
)
def test_what_is_no_such_file(tmp_path: Path, text: bytes, mode: int, reason: str) -> None:
    path = tmp_path / "users.jsonl"
    path.write_bytes(text)
    path.chmod(mode)
    with pytest.raises(OperatorError, match=reason):
        read_users_file(path)
    with pytest.raises(OperatorError, match="cannot read: No such file"):
        read_users_file(tmp_path / "missing")
