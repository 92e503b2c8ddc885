"""`strandline user`: names with passwords for SCRAM and PLAIN.

Why:    the password never stands on a command line, where every process of the machine sees it.
Source: docs/operating/security-logins.md; KIP-554."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from strandline.base.errors import OperatorError
from strandline.base.json_value import Json
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, print_line, print_table, show
from strandline.security.sasl.iterations import (
    ITERATIONS_DEFAULT,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
)

app = typer.Typer(
    help="Users: names with passwords, for listeners where clients log in.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user.", show_default=False)]
PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help="A file whose first line is the password; default: ask for it, or standard input.",
    ),
]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help="SCRAM-SHA-256 or SCRAM-SHA-512; may be repeated; default: both.",
    ),
]


@app.command()
def create(
    name: Name,
    password_file: PasswordFile = None,
    mechanism: Mechanisms = None,
    iterations: Annotated[
        int,
        typer.Option(
            min=ITERATIONS_MIN, max=ITERATIONS_MAX, metavar="COUNT", help="Rounds of hashing."
        ),
    ] = ITERATIONS_DEFAULT,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="Write the user into this file, for [access] users_file, and ask no cluster.",
        ),
    ] = None,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
) -> None:
    """Make a user, or give one another password."""
    from strandline.client.operations.users import set_password
    from strandline.security.sasl.secrets import HASHES, secret_from_password
    from strandline.security.sasl.users_file import write_users

    chosen = [one.upper() for one in mechanism or HASHES]
    for one in chosen:
        if one not in HASHES:
            raise OperatorError(f"--mechanism {one}: must be {' or '.join(HASHES)}")
    password = _read_password(password_file)
    if file is not None:
        write_users(
            file,
            [secret_from_password(name, one, password, iterations=iterations) for one in chosen],
        )
        print_line(f"user {name} is in {file}: name it by [access] users_file, and restart brokers")
        return
    with open_client(bootstrap, timeout) as client:
        set_password(client, name, password, mechanisms=chosen, iterations=iterations)
    print_line(f"user {name} may log in by {', '.join(chosen)}")


@app.command("list")
def list_(
    bootstrap: Bootstrap = "", timeout: Timeout = DEFAULT_TIMEOUT_S, as_json: AsJson = False
) -> None:
    """List the users and how they may log in."""
    from strandline.client.operations.users import list_users

    with open_client(bootstrap, timeout) as client:
        users = list_users(client)

    def print_all() -> None:
        lines = [
            (user.name, name, count) for user in users for name, count in user.mechanisms.items()
        ]
        if lines:
            heads = ("USER", "MECHANISM", "ITERATIONS")
            print_table(Table(heads, lines, right=frozenset({"ITERATIONS"})))
        else:
            print_line("there are no users")

    rows: list[Json] = [{"user": one.name, "mechanisms": dict(one.mechanisms)} for one in users]
    show(rows, as_json=as_json, people=print_all)


@app.command()
def delete(name: Name, bootstrap: Bootstrap = "", timeout: Timeout = DEFAULT_TIMEOUT_S) -> None:
    """Remove a user: no new connection can log in as it. Its rules stay."""
    from strandline.client.operations.users import remove_user

    with open_client(bootstrap, timeout) as client:
        remove_user(client, name)
    print_line(f"user {name} is removed; connections that are open stay until they end")


def _read_password(path: Path | None) -> str:
    """The password; raises OperatorError."""
    if path is not None:
        try:
            lines = path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is no text"
            raise OperatorError(f"--password-file {path}: cannot read: {reason}") from error
        password = lines[0] if lines else ""
    elif sys.stdin.isatty():
        password = typer.prompt("password", hide_input=True, confirmation_prompt=True)
    else:
        password = sys.stdin.readline().rstrip("\n")
    if not password:
        raise OperatorError("the password is empty: give one by --password-file or standard input")
    return password
