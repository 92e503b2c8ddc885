"""Reads what a store wants to know of a client, from a file that no other user may read.

Why:    the broker's own file is often in version control, and its values are shown to any client;
        a secret must never be there, in a log or in an error.
How:    one TOML table per bucket, named by its region. Errors name keys, never values.
Source: decision 0058."""

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from strandline.base.errors import OperatorError

KEYS: dict[str, tuple[str, ...]] = {
    "file": (),
    "s3": ("access_key_id", "secret_access_key", "session_token", "role_arn"),
    "gs": ("service_account", "service_account_key"),
    "az": ("account_key", "sas_key", "client_id", "client_secret", "tenant_id"),
}
"""{scheme: the keys of a table; the names are those of obstore's configuration}"""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class CredentialsFile:
    """Where the credentials of all buckets are; an empty path: in the environment."""

    path: str = ""

    def read(self, bucket: str, scheme: str) -> Mapping[str, str]:
        """The credentials of a bucket; none if the environment has them. Raises OperatorError."""
        if not self.path or not KEYS[scheme]:
            return {}
        table = self._tables().get(bucket, {})
        if not isinstance(table, dict):
            raise OperatorError(f"{self.path}: {bucket} must be a table: [{bucket}]")
        for key, value in table.items():
            if key not in KEYS[scheme]:
                raise OperatorError(
                    f"{self.path}: [{bucket}] has the unknown key {key[:60]!r}; credentials of "
                    f"{scheme}:// are {', '.join(KEYS[scheme])}"
                )
            if not isinstance(value, str) or not value:
                raise OperatorError(f"{self.path}: [{bucket}] {key} must be text in quotes")
        return table

    def _tables(self) -> dict[str, object]:
        try:
            with open(self.path, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                if mode & _OTHERS:
                    raise OperatorError(
                        f"{self.path}: other users may read or write it: run chmod 600 {self.path}"
                    )
                return tomllib.load(file)
        except OSError as error:
            raise OperatorError(
                f"{self.path}: {error.strerror}: [tiered] credentials_file names it"
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError):
            # The message of the parser may quote the file.
            raise OperatorError(f"{self.path}: is not TOML") from None
