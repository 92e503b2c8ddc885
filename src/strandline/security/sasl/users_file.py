"""Users in a file: for logins before the controller knows any.

Why:    the first user cannot be made by a user. And an administrator gets in while the controller's
        users are being mended.
How:    lines of `{"user": ..., "mechanism": ..., ...}`, each with a secret as the controller keeps
        it; no line has a password. The controller's secret of the same user and mechanism counts
        first.
Source: decision 0069; RFC 5803 has the same fields."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from strandline.base.errors import OperatorError
from strandline.model.access import ScramSecret
from strandline.security.sasl.secrets import HASHES
from strandline.security.secret_file import read_secret_lines, replace_secret_lines

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[ScramSecret] = msgspec.json.Decoder(ScramSecret)

Secrets = dict[tuple[str, str], ScramSecret]


def read_users_file(path: Path) -> Secrets:
    """{(user, mechanism): secret}; raises OperatorError."""
    found: Secrets = {}
    for number, line in enumerate(read_secret_lines(path), start=1):
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
    replace_secret_lines(path, [_encoder.encode(one) for one in known.values()])
