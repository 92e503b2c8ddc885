"""An identity provider on paper: its keys in a file, and tokens, right and wrong.

Why:    a token that is wrong in one place only reaches the check of that place.
Owns:   the keys. The broker reads the public one from a file."""

import json
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from random import Random

from joserfc import jwk, jwt

from fuzz.access_targets import AUDIENCE, ISSUER

KID = "k1"
DAY_S = 86_400
PAST_S = 3_600
"""Further than clocks may differ."""


class Provider:
    """See the module."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "keys.json"
        self._key = jwk.ECKey.generate_key("P-256", {"kid": KID})
        self._other = jwk.ECKey.generate_key("P-256", {"kid": KID})
        self._public = self._key.as_dict(private=False)
        self.file.write_text(json.dumps({"keys": [self._public]}))

    def token(self, user: str, *, seconds: float = DAY_S) -> str:
        """One that holds."""
        return self._signed(self.claims(user, seconds=seconds))

    def wrong_token(self, random: Random, user: str) -> str:
        """One that does not hold, for one reason."""
        claims = self.claims(user)
        if random.random() < 0.5:
            claims |= random.choice(_wrong_claims())
            return self._signed(claims)
        if random.random() < 0.3:
            return self._signed({name: claims[name] for name in claims if name != "exp"})
        header, body, signature = self._signed(self.claims("guest")).split(".")
        forged = self._signed(claims, self._other)
        secret = jwk.OctKey.import_key(json.dumps(self._public))
        by_public_key = jwt.encode({"alg": "HS256", "kid": KID}, claims, secret)
        return random.choice(
            (
                forged,
                by_public_key,
                ".".join((header, forged.split(".")[1], signature)),
                ".".join((header, body, "")),
                ".".join((_none_header(), forged.split(".")[1], "")),
                f"{header}.{body}.{signature}.{signature}",
                f"{header}.{body}",
                "..",
            )
        )

    def claims(self, user: str, *, seconds: float = DAY_S) -> dict[str, object]:
        """What a right token says."""
        now = int(time.time())
        return {"iss": ISSUER, "aud": AUDIENCE, "sub": user, "iat": now, "exp": now + seconds}

    def _signed(self, claims: dict[str, object], key: jwk.ECKey | None = None) -> str:
        return jwt.encode({"alg": "ES256", "kid": KID}, claims, key or self._key)


def _wrong_claims() -> tuple[dict[str, object], ...]:
    now = int(time.time())
    return (
        {"iss": "https://id.example"},
        {"iss": [ISSUER]},
        {"aud": "mail"},
        {"aud": [AUDIENCE.upper()]},
        {"aud": {AUDIENCE: 1}},
        {"exp": now - PAST_S},
        {"exp": str(now + DAY_S)},
        {"exp": True},
        {"exp": float("nan")},
        {"nbf": now + PAST_S},
        {"iat": now + PAST_S},
        {"sub": ""},
        {"sub": "*"},
        {"sub": ["admin"]},
        {"sub": "x" * 2_000},
        {"groups": ["g"] * 2_000},
    )


def _none_header() -> str:
    header = json.dumps({"alg": "none", "kid": KID}).encode()
    return urlsafe_b64encode(header).decode().rstrip("=")
