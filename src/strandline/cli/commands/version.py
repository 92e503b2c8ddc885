"""`strandline version`.

Source: docs/reference/cli.md."""

from strandline.cli.options import AsJson
from strandline.cli.output import print_line, show


def version(as_json: AsJson = False) -> None:
    """Print the version."""
    import platform
    from importlib.metadata import version as installed_version

    number = installed_version("strandline")
    python = platform.python_version()
    show(
        {"strandline": number, "python": python, "platform": platform.platform()},
        as_json=as_json,
        people=lambda: print_line(f"strandline {number} (Python {python})"),
    )
