"""How a query proves itself to brokers: its options, and the files that they name on each machine.

Why:    options are in plans, in Spark's pages and in event logs; passwords must not be. The option
        `clientConfig` names a file, which the driver and each executor read themselves.
How:    an `Access` travels in place of them; `client.access` finds and reads the file.
Source: decision 0049; Spark's `spark.redaction.regex`, for passwords that are options."""

from collections.abc import Mapping

from strandline.base.errors import OperatorError
from strandline.client.access import Access
from strandline.model.cluster import Address
from strandline.spark.reading.option_values import Values

FILE = "clientConfig"
_PREFIXES = ("kafka.security.", "kafka.sasl.", "kafka.ssl.")


def parse_reach(values: Values) -> tuple[tuple[Address, ...], Access | None]:
    """The brokers to contact first, and how; None: over plain connections. Raises OperatorError if
    this machine cannot read what the options name."""
    given = {
        name.removeprefix("kafka."): values.text(name)
        for name in sorted(values.given)
        if name.startswith(_PREFIXES)
    }
    file = values.text(FILE)
    if file and given:
        raise OperatorError(f"kafka.{min(given)} is a matter of the file {file}: put it there")
    access = Access(file) if file else _inline(given)
    config = None if access is None else access.read()
    return values.bootstrap("" if config is None else config.bootstrap), access


def _inline(given: Mapping[str, str]) -> Access | None:
    named = given.keys() - {"security.protocol"}
    if given.get("security.protocol", "PLAINTEXT").upper() != "PLAINTEXT":
        return Access.of(given)
    if named:
        raise OperatorError(
            f"kafka.{min(named)} has no effect without kafka.security.protocol: give SSL or "
            "SASL_SSL"
        )
    return None
