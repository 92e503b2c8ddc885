"""A file of tokens of the HTTP port: made, changed, and refused where it cannot be right."""

import json
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.security import http_tokens as module
from strandline.security.http_tokens import HttpTokens, create_token, delete_token, read_tokens


def test_a_token_is_found_by_itself_and_is_in_no_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    first, second = create_token(path, "prometheus"), create_token(path, "mia")
    assert path.stat().st_mode & 0o777 == 0o600 and len(first) > 40
    text = path.read_text()
    assert first not in text and second not in text and first.removeprefix("sl_") not in text
    tokens = HttpTokens(path)
    for token, name in ((first, "prometheus"), (second, "mia")):
        found = tokens.find(token)
        assert found is not None and found.name == name
    (digest, _) = (one.sha256 for one in read_tokens(path))
    for wrong in ("", "sl_", first[:-1], first + "x", first.upper(), "prometheus", digest, "\xfc"):
        assert tokens.find(wrong) is None, wrong


def test_a_token_of_the_same_name_takes_its_place_and_a_deleted_one_is_gone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tokens.jsonl"
    old, other = create_token(path, "a"), create_token(path, "b")
    tokens = HttpTokens(path)
    assert not tokens.reload_if_changed()
    new = create_token(path, "a")
    assert tokens.find(old), "the file is not read again by itself"
    assert tokens.reload_if_changed() and not tokens.reload_if_changed()
    assert not tokens.find(old) and tokens.find(new) and tokens.find(other)
    delete_token(path, "a")
    assert tokens.reload_if_changed()
    assert not tokens.find(new) and tokens.find(other)
    with pytest.raises(OperatorError, match="has no token 'a'; it has b"):
        delete_token(path, "a")


def test_a_changed_file_that_cannot_be_right_changes_nothing_and_is_told_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tokens.jsonl"
    token = create_token(path, "a")
    tokens = HttpTokens(path)
    path.write_text("{")
    with pytest.raises(OperatorError, match=r"\[metrics\] tokens_file: .*line 1 is no token"):
        tokens.reload_if_changed()
    assert not tokens.reload_if_changed() and tokens.find(token)
    path.unlink()
    with pytest.raises(OperatorError, match="cannot read: No such file"):
        tokens.reload_if_changed()
    assert tokens.find(token)


LINE = {"name": "a", "role": "read", "sha256": "0" * 64, "created": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        ("", 0o640, "other users may use it: chmod 600"),
        ("sl_secret\n", 0o600, "line 1 is no token: write it by `strandline http-token create`"),
        (json.dumps(LINE | {"role": "operate"}), 0o600, "line 1 has no role"),
        (json.dumps(LINE) + "\n" + json.dumps(LINE | {"sha256": ""}), 0o600, "line 2 has no role"),
        (json.dumps(LINE | {"sha256": "\xfc" * 64}), 0o600, "line 1 has no role and SHA-256"),
        ((json.dumps(LINE) + "\n") * 1_001, 0o600, "1001 tokens; 1000 are the most"),
    ],
)
def test_what_is_no_such_file(tmp_path: Path, text: str, mode: int, reason: str) -> None:
    path = tmp_path / "tokens.jsonl"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(OperatorError, match=reason):
        HttpTokens(path)


def test_names_and_their_number_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokens.jsonl"
    for name in ("", "x" * 101, "a\nb"):
        with pytest.raises(OperatorError, match="1 to 100 printable"):
            create_token(path, name)
    monkeypatch.setattr(module, "TOKENS_MAX", 1)
    create_token(path, "a")
    create_token(path, "a")
    with pytest.raises(OperatorError, match="and 1 are the most"):
        create_token(path, "b")
