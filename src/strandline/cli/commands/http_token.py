"""`strandline http-token`: tokens of programs and people that read the HTTP port.

Why:    monitors have no certificate. The commands ask no cluster: they change a file.
Source: docs/operating/security.md; decision 0069."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.options import AsJson
from strandline.cli.output import Table, print_line, print_table, show

app = typer.Typer(
    help="Tokens of the HTTP port: for monitors, and for people with a browser.",
    no_args_is_help=True,
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The program or person.", show_default=False)
]
TokensFile = Annotated[
    Path,
    typer.Option("--file", metavar="FILE", help="The file that [metrics] tokens_file names."),
]


@app.command()
def create(name: Name, file: TokensFile) -> None:
    """Make a token and print it: FILE has only its hash. A token of the same name ends."""
    from strandline.security.http_tokens import create_token

    print_line(create_token(file, name))
    if sys.stdout.isatty():
        sys.stderr.write("This is the only time that the token is shown.\n")


@app.command("list")
def list_(file: TokensFile, as_json: AsJson = False) -> None:
    """List the tokens of a file by their names."""
    from strandline.security.http_tokens import read_tokens

    tokens = read_tokens(file)

    def print_all() -> None:
        if tokens:
            rows = [(one.name, one.role, one.created) for one in tokens]
            print_table(Table(("TOKEN", "ROLE", "CREATED"), rows))
        else:
            print_line("there are no tokens")

    told: list[Json] = [
        {"token": one.name, "role": one.role, "created": one.created} for one in tokens
    ]
    show(told, as_json=as_json, people=print_all)


@app.command()
def delete(name: Name, file: TokensFile) -> None:
    """Take a token out of a file: brokers refuse it within seconds."""
    from strandline.security.http_tokens import delete_token

    delete_token(file, name)
    print_line(
        f"token {name} is out of {file}; brokers that read this file refuse it within seconds"
    )
