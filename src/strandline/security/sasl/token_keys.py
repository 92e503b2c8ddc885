"""The public keys that tokens are signed with: a JSON Web Key Set, as read.

How:    A key that cannot verify signatures is left out, with its reason: other kinds of key,
        keys for encryption, private keys, RSA keys that are too short. The rest counts.
Owns:   nothing; a set is a value.
Source: RFC 7517; decision 0069."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from strandline.base.errors import StrandlineError

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    PublicKey = RSAKey | ECKey | OKPKey

KEY_SET_BYTES_MAX = 512 * 1024
KEYS_MAX = 256
RSA_BITS_MIN = 2_048
RSA_BITS_MAX = 8_192
KINDS = ("RSA", "EC", "OKP")
ALGORITHMS = {
    "RS256": "RSA",
    "RS384": "RSA",
    "RS512": "RSA",
    "PS256": "RSA",
    "PS384": "RSA",
    "PS512": "RSA",
    "ES256": "EC",
    "ES384": "EC",
    "ES512": "EC",
    "EdDSA": "OKP",
    "Ed25519": "OKP",
}
"""{algorithm: the kind of its keys}. None of them is symmetric, and `none` is not one of them."""


class KeySetError(StrandlineError):
    """No usable keys; the message says why."""


class TokenKeys:
    """The keys of one set. `left_out`: why others are not in it."""

    def __init__(self, keys: "Iterable[PublicKey]" = (), left_out: Iterable[str] = ()) -> None:
        self._keys = tuple(keys)
        self._names = frozenset(one.get("kid") for one in self._keys)
        self.left_out = tuple(left_out)

    def __len__(self) -> int:
        return len(self._keys)

    def lacks(self, name: object) -> bool:
        """Whether a newer set may have the key that a token names (`kid`), and this one has not.
        `name` is None if the token names none."""
        return not self._keys or (isinstance(name, str) and name not in self._names)

    def find(self, name: object, algorithm: str) -> "PublicKey | None":
        """The key of this name that is for the algorithm. Without a name: the only key for it."""
        found = [
            one
            for one in self._keys
            if one.key_type == ALGORITHMS.get(algorithm)
            and one.get("alg") in (None, algorithm)
            and (name is None or one.get("kid") == name)
        ]
        return found[0] if len(found) == 1 else None


def read_key_set(document: bytes) -> TokenKeys:
    """The keys of a set as JSON; raises KeySetError if it has none that is of use. Imports the
    library, and takes some milliseconds."""
    try:
        keys = json.loads(document)["keys"]
        if not isinstance(keys, list) or len(keys) > KEYS_MAX:
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise KeySetError(f"no set of at most {KEYS_MAX} JSON Web Keys") from error
    taken: list[PublicKey] = []
    left_out: list[str] = []
    for number, one in enumerate(keys, start=1):
        try:
            taken.append(_read_key(one))
        except ValueError as error:
            left_out.append(f"key {number}: {error}")
    if not taken:
        reasons = "; ".join(left_out[:3]) or "the set is empty"
        raise KeySetError(f"no key that can verify tokens: {reasons}")
    return TokenKeys(taken, left_out)


def _read_key(fields: object) -> "PublicKey":
    """Raises ValueError with the reason."""
    from joserfc.jwk import ECKey, OKPKey, RSAKey, import_key

    if not isinstance(fields, Mapping) or fields.get("kty") not in KINDS:
        raise ValueError(f"its kty is not one of {', '.join(KINDS)}")
    if "d" in fields:
        raise ValueError("it is a private key: its readers could sign tokens; give the public key")
    if fields.get("use", "sig") != "sig":
        raise ValueError("it is not for signatures")
    # A modulus of base64, whose length is judged before the library parses it.
    bits = len(str(fields.get("n", ""))) * 6
    if fields["kty"] == "RSA" and not RSA_BITS_MIN <= bits <= RSA_BITS_MAX + 8:
        raise ValueError(f"RSA keys have {RSA_BITS_MIN} to {RSA_BITS_MAX} bits")
    try:
        key = import_key(dict(fields))
    except Exception as error:  # The library has no common error for fields that are wrong.
        raise ValueError(f"it cannot be read: {error}") from error
    assert isinstance(key, RSAKey | ECKey | OKPKey)
    if isinstance(key, RSAKey) and key.raw_value.key_size < RSA_BITS_MIN:
        raise ValueError(f"RSA keys have {RSA_BITS_MIN} to {RSA_BITS_MAX} bits")
    return key
