"""A client's configuration file, in the words of each library.

Why:    one file, in librdkafka's spelling, serves commands and all clients.
Owns:   nothing."""

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError


def read_values(path: Path | None) -> dict[str, str]:
    """{key: value}; empty without a file."""
    if path is None:
        return {}
    pairs = (line.partition("=") for line in path.read_text().splitlines())
    return {name: value for name, _, value in pairs}


def librdkafka(path: Path | None) -> dict[str, Any]:
    """Settings of librdkafka, but for the brokers' addresses."""
    return {name: value for name, value in read_values(path).items() if name != "bootstrap.servers"}


def is_of_a_login(error: KafkaError) -> bool:
    """Whether a login failed, for any reason: a poll tells it without the reason, as an error that
    does not pass, though the client connects again."""
    return bool(error.code() == KafkaError._AUTHENTICATION)


def is_refused_login(error: KafkaError) -> bool:
    """Whether a broker refused a login, by what `error_cb` gets. A connection that ended during a
    login, as its broker was killed, has other words."""
    lost = ("Local: Broker transport failure", "Local: Timed out")
    return is_of_a_login(error) and not any(words in error.str() for words in lost)


def kafka_python(path: Path | None) -> dict[str, Any]:
    """Settings of kafka-python."""
    values = read_values(path)
    if not values:
        return {}
    return {**_login(values), "ssl_cafile": values["ssl.ca.location"]}


def aiokafka(path: Path | None) -> dict[str, Any]:
    """Settings of aiokafka."""
    values = read_values(path)
    if not values:
        return {}
    context = ssl.create_default_context(cafile=values["ssl.ca.location"])
    return {**_login(values), "ssl_context": context}


def _login(values: dict[str, str]) -> dict[str, str]:
    return {
        "security_protocol": values["security.protocol"],
        "sasl_mechanism": values["sasl.mechanism"],
        "sasl_plain_username": values["sasl.username"],
        "sasl_plain_password": values["sasl.password"],
    }


class PasswordWatch:
    """Gives a client its user's new password once the file has one: `take(user, password)`."""

    def __init__(self, path: Path | None, take: Callable[[str, str], None]) -> None:
        self._path = path
        self._take = take
        self._stamp = self._newest()

    def look(self) -> None:
        """Look at the file; cheap enough for each turn of a client's loop."""
        stamp = self._newest()
        if stamp != self._stamp:
            self._stamp = stamp
            values = read_values(self._path)
            self._take(values["sasl.username"], values["sasl.password"])

    def _newest(self) -> int:
        return 0 if self._path is None else self._path.stat().st_mtime_ns
