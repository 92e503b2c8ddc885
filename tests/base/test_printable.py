"""What others have named is shown without steering a terminal or a reader.

Source: decision 0069; ECMA-48."""

import json

import pytest

from strandline.base.printable import printable, printable_json

HOSTILE = {
    "a colour": ("\x1b[31mred", "\\x1b[31mred"),
    "a title of the window": ("\x1b]0;x\x07", "\\x1b]0;x\\x07"),
    "an 8-bit sequence": ("\x9b31m", "\\x9b31m"),
    "a line of its own": ("a\r\nb", "a\\x0d\\x0ab"),
    "another line of its own": ("a\x85b\u2028c", "a\\x85b\\u2028c"),
    "a reversed end": ("gro\u202epuo", "gro\\u202epuo"),
    "an isolate": ("\u2066x\u2069", "\\u2066x\\u2069"),
    "no width": ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
    "a tag": ("a\U000e0041", "a\\U000e0041"),
    "half a character": ("a\ud800", "a\\ud800"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_steers_becomes_an_escape(case: str) -> None:
    text, shown = HOSTILE[case]
    assert printable(text) == shown


@pytest.mark.parametrize("case", HOSTILE)
def test_a_document_says_the_same_with_escapes(case: str) -> None:
    text, _ = HOSTILE[case]
    document = json.dumps({"name": text, "other": "ok"}, indent=2, ensure_ascii=False)
    shown = printable_json(document)
    assert json.loads(shown) == json.loads(document)
    assert shown.count("\n") == document.count("\n")
    assert all(one == "\n" or (one.isprintable() and not "\x7f" <= one <= "\x9f") for one in shown)


def test_names_of_all_languages_stay() -> None:
    for text in ("orders", "заказы", "注文", "طلبات", "naïve café", "a b", "\\x1b"):
        assert printable(text) == text
        assert printable_json(text) == text


def test_a_programs_own_breaks_stay_where_it_says_so() -> None:
    assert printable("a\n\tb\x1b", keeps_breaks=True) == "a\n\tb\\x1b"
