"""`--client-config FILE` on a command line, which every command that contacts brokers takes.

How:    the option is taken off the command line before it is parsed: its place is the environment,
        where STRANDLINE_CLIENT_CONFIG names the same file.
Source: docs/reference/cli.md."""

import os
from collections.abc import Sequence

from strandline.base.errors import OperatorError

CLIENT_CONFIG_OPTION = "--client-config"
CLIENT_CONFIG_VARIABLE = "STRANDLINE_CLIENT_CONFIG"


def take_client_config(arguments: Sequence[str]) -> list[str]:
    """The command line without `--client-config FILE`. Raises OperatorError."""
    left: list[str] = []
    given = iter(arguments)
    for argument in given:
        name, equals, value = argument.partition("=")
        if argument == "--":
            left += [argument, *given]
        elif name == CLIENT_CONFIG_OPTION:
            path = value if equals else next(given, "")
            if not path:
                raise OperatorError(f"{CLIENT_CONFIG_OPTION}: name a file")
            os.environ[CLIENT_CONFIG_VARIABLE] = path
        else:
            left.append(argument)
    return left
