"""The Rust client rdkafka: cargo fetches the crate and compiles the librdkafka that it carries."""

from collections.abc import Sequence

from clients.cells import program_cells
from clients.client import Client
from clients.toolbox import built

STEPS = (("cargo", "build", "--quiet", "--target-dir", "{out}/target"),)
CELLS = program_cells(lambda: _argv(), is_librdkafka=True)


def _prepare() -> object:
    return built("rust", STEPS, copies=True)


def _argv() -> Sequence[str]:
    return [str(built("rust", STEPS, copies=True) / "target" / "debug" / "rust-rdkafka")]


RDKAFKA = Client(
    name="rdkafka (Rust)",
    version="0.39.0",
    tried="every codec, idempotent, assignment, a group of two",
    cells={name: cell for name, cell in CELLS.items() if name != "admin"},
    needs={"cargo": "apt-get install cargo", "make": "apt-get install build-essential"},
    prepare=_prepare,
    not_tried={"admin": "its admin client needs an asynchronous runtime"},
    downloads=True,
)
