"""A page as somebody reads it: tables by their heads, paragraphs by their ids, links."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Read(HTMLParser):
    """What stands on a page. `tables`: {id: [{head: cell}]}; `texts`: {id: what it says}; `shown`:
    all that is seen; `tags`: the elements that there are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[dict[str, str]]] = {}
        self.texts: dict[str, str] = {}
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.shown = ""
        self.title = ""
        self._open: list[tuple[str, str]] = []
        self._heads: list[str] = []
        self._cells: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], f"{self._open} never end"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.links += [str(given["href"])] if "href" in given else []
        if tag in VOID:
            return
        self._open.append((tag, given.get("id") or ""))
        if tag == "table":
            self._heads = []
            self.tables[given.get("id") or ""] = []
        if tag == "tr":
            self._cells = []
        if tag in ("td", "th"):
            self._cells.append("")

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self._open.pop()
        assert opened == tag, f"</{tag}> ends <{opened}>"
        if tag == "tr" and not self._heads:
            self._heads = [one.strip() for one in self._cells]
        elif tag == "tr":
            cells = [" ".join(one.split()) for one in self._cells]
            row = dict(zip(self._heads, cells, strict=True))
            self.tables[next(name for kind, name in self._open if kind == "table")].append(row)

    def handle_data(self, data: str) -> None:
        within = [tag for tag, _ in self._open]
        if "style" in within:
            return
        if "title" in within:
            self.title += data
            return
        self.shown += data
        if within and within[-1] != "tr" and {"td", "th"} & set(within):
            self._cells[-1] += data
        for tag, name in self._open:
            if name and tag != "table":
                self.texts[name] = " ".join((self.texts.get(name, "") + data).split())

    def expect_safe(self) -> None:
        """Nothing is run, sent or loaded from elsewhere."""
        assert not self.tags & {"script", "iframe", "form", "img", "link", "object", "base"}
        assert all(one.startswith("/") and not one.startswith("//") for one in self.links)
