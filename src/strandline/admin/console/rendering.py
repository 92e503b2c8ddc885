"""Renders HTML on the server; no name in a page can inject markup.

Why:    topic names, labels and error texts come from users. One place escapes all values of a
        template, and the browser may run no script.
How:    templates are compiled at start. A page is rendered in slices, because it may have thousands
        of rows. The one style sheet is inline and allowed by its hash.
Owns:   the compiled templates.
Source: decision 0036; W3C, "Content Security Policy Level 3"."""

import base64
import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from strandline.admin.console.rows import lasted
from strandline.admin.http_server import Answer
from strandline.admin.pace import Pace
from strandline.base.printable import printable

HTML = "text/html; charset=utf-8"
REFRESH_S = 10
REFRESHED = ("Refresh", str(REFRESH_S))
"""The header that makes a browser reload the page."""
PART_BYTES = 64 * 1024
PIECES = 100
"""Pieces of a page between two calls of `Pace.rest`."""
_PACKAGE = "strandline.admin.console"
_TEMPLATES = ("index.html", "topics.html", "topic.html", "missing.html")


class Rendering:
    """See the module."""

    def __init__(self) -> None:
        style = files(_PACKAGE).joinpath("style.css").read_text("utf-8")
        environment = Environment(
            loader=PackageLoader(_PACKAGE),
            autoescape=True,
            finalize=_shown,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters["lasted"] = lasted
        # Our own text: escaping would change it, and its hash would not match.
        environment.globals |= {"style": Markup(style), "refresh_s": REFRESH_S}
        self._templates = {name: environment.get_template(name) for name in _TEMPLATES}
        self._headers = (("Content-Security-Policy", _policy(style)), REFRESHED)

    async def page(
        self,
        template: str,
        values: Mapping[str, object],
        pace: Pace,
        *,
        status: HTTPStatus = HTTPStatus.OK,
    ) -> Answer:
        """Render a template; `pace` lets the broker's loop run in between."""
        parts = [bytearray()]
        for position, piece in enumerate(self._templates[template].generate(values)):
            if position % PIECES == 0:
                await pace.rest()
            if len(parts[-1]) >= PART_BYTES:
                parts.append(bytearray())
            parts[-1] += piece.encode()
        return Answer([bytes(part) for part in parts], status, HTML, self._headers)


def _shown(value: object) -> object:
    """A value of a template: text of others reverses and hides nothing on the page."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value, keeps_breaks=True)
    return value


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
