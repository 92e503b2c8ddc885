"""Users in a file: for logins before the controller knows any.

Why:    the first user cannot be made by a user. And an administrator gets in while the controller's
        users are being mended.
How:    lines of `{"user": ..., "mechanism": ..., ...}`, each with a secret as the controller keeps
        it; no line has a password. The controller's secret of the same user and mechanism counts
        first.
Source: decision 0069; RFC 5803 has the same fields."""

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from strandline.base.errors import OperatorError
from strandline.model.access import ScramSecret
from strandline.security.sasl.secrets import HASHES

FILE_BYTES_MAX = 10 * 1024 * 1024
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[ScramSecret] = msgspec.json.Decoder(ScramSecret)

Secrets = dict[tuple[str, str], ScramSecret]


def read_users_file(path: Path) -> Secrets:
    """{(user, mechanism): secret}; raises OperatorError."""
    try:
        status = path.stat()
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise OperatorError(f"{path}: other users may use it: chmod 600 {path}")
        if status.st_size > FILE_BYTES_MAX:
            raise OperatorError(f"{path}: {status.st_size} bytes; {FILE_BYTES_MAX} are the most")
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise OperatorError(f"{path}: cannot read: {error.strerror}") from error
    found: Secrets = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            secret = _decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise OperatorError(
                f"{path}: line {number} is no user: write it by `strandline user create --file`"
            ) from error
        if secret.mechanism not in HASHES or not secret.user:
            raise OperatorError(f"{path}: line {number} has no user and mechanism that are known")
        found[secret.user, secret.mechanism] = secret
    return found


def write_users(path: Path, secrets: Iterable[ScramSecret]) -> None:
    """Add users to a file, or give those that are there other passwords. The file is replaced as a
    whole. Raises OperatorError."""
    known = read_users_file(path) if path.exists() else {}
    known |= {(one.user, one.mechanism): one for one in secrets}
    _replace(path, list(known.values()))


def _replace(path: Path, secrets: Sequence[ScramSecret]) -> None:
    written = path.with_name(f"{path.name}.new")
    try:
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(_encoder.encode(one) + b"\n" for one in secrets)
            file.flush()
            os.fsync(file.fileno())
        written.replace(path)
    except OSError as error:
        raise OperatorError(f"{path}: cannot write: {error.strerror}") from error
