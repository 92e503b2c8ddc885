"""Parses the buckets of a broker's file: each is a region and a URL with options.

Why:    a bucket is named by its region everywhere: in the log's markers, in metrics, in commands.
How:    `region=file:///directory`, `region=s3://bucket/prefix?region=..&endpoint=..`,
        `region=gs://bucket/prefix`, `region=az://container/prefix?account=..`; a store of one's
        own adds `endpoint=..`, and `ca_file=..` if its certificate is by no public authority.
        Credentials are never part of it.
Owns:   nothing.
Source: decision 0058."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from strandline.config.addresses import URL_CHARACTERS_MAX, check_label
from strandline.config.keys import Value
from strandline.model.cluster import Labels

OPTIONS: dict[str, tuple[str, ...]] = {
    "file": (),
    "s3": ("region", "endpoint", "virtual_host", "ca_file"),
    "gs": (),
    "az": ("account", "endpoint", "ca_file"),
}
"""{scheme: the options that a URL of it may have}"""
_EXAMPLE = "east=s3://bucket/prefix?region=us-east-1"


@dataclass(frozen=True, slots=True)
class BucketUrl:
    """Where a bucket is. `prefix` has no slash at either end; of a directory `container` is the
    absolute path, and there is no prefix."""

    name: str
    """Its region, and its name everywhere."""
    scheme: str
    container: str
    prefix: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def option(self, name: str) -> str:
        """The value of an option; empty if it is not given."""
        return dict(self.options).get(name, "")

    def is_beside(self, other: "BucketUrl") -> bool:
        """Whether both are prefixes of one bucket of a store."""
        return (self.scheme, self.container, self.options) == (
            other.scheme,
            other.container,
            other.options,
        )

    def path_of(self, name: str) -> str:
        """An object's name in the whole bucket."""
        return f"{self.prefix}/{name}" if self.prefix else name

    def __str__(self) -> str:
        """Where it is, for people: the URL without options."""
        place = f"{self.scheme}://{self.container}"
        return f"{place}/{self.prefix}" if self.prefix else place


def parse_url(text: str, *, name: str = "") -> BucketUrl:
    """Read the URL of a bucket, or of a directory in one; raises ValueError with the reason."""
    if len(text) > URL_CHARACTERS_MAX or not text.isprintable() or " " in text:
        raise ValueError(f"has no URL of at most {URL_CHARACTERS_MAX} printable characters")
    scheme, colon, _ = text.partition("://")
    if not colon or scheme not in OPTIONS:
        raise ValueError(f"must be a URL of {_schemes()}, not {_shown(text)!r}")
    parts = urlsplit(text)
    if parts.fragment or parts.username is not None or parts.password is not None:
        raise ValueError(
            f"has a user, a password or a fragment: {_shown(text)!r}; give credentials in "
            "[tiered] credentials_file or in the environment"
        )
    options = tuple(sorted(parse_qsl(parts.query, keep_blank_values=True)))
    for option, _ in options:
        if option not in OPTIONS[scheme]:
            allowed = ", ".join(OPTIONS[scheme]) or "none"
            raise ValueError(f"has the option {option!r}; a {scheme} URL may have: {allowed}")
    if len(dict(options)) != len(options):
        raise ValueError(f"gives an option twice: {_shown(text)!r}")
    if scheme == "file":
        path = unquote(parts.path).rstrip("/")
        if parts.netloc or not path or ".." in path.split("/") or not path.isprintable():
            raise ValueError(f"must name a directory as in file:///var/buckets, not {text!r}")
        return BucketUrl(name, scheme, path)
    prefix = parts.path.strip("/")
    if not parts.netloc or any(part in ("", ".", "..") for part in prefix.split("/") if prefix):
        raise ValueError(f"must name a bucket as in {scheme}://bucket/prefix, not {_shown(text)!r}")
    _check_options(dict(options))
    return BucketUrl(name, scheme, parts.netloc, prefix, options)


def parse_bucket(text: str) -> BucketUrl:
    """Read `region=url`; raises ValueError with the reason."""
    name, sign, url = text.partition("=")
    if not sign or "://" in name:
        raise ValueError(f"must look like region=url, as in {_EXAMPLE}, not {_shown(text)!r}")
    reason = check_label(name)
    if reason is not None or not name:
        raise ValueError(f"names a region that {reason or 'is empty'}")
    return parse_url(url, name=name)


def check_buckets(value: Value) -> str | None:
    """Whether every part is a bucket, no region and no place twice."""
    assert isinstance(value, tuple)
    try:
        buckets = [parse_bucket(part) for part in value]
    except ValueError as error:
        return str(error)
    for what, seen in (
        ("region", [one.name for one in buckets]),
        ("place", [f"{one} {one.option('endpoint')}".strip() for one in buckets]),
    ):
        twice = next((one for one in seen if seen.count(one) > 1), None)
        if twice is not None:
            return f"gives the {what} {twice} twice"
    return None


def check_bucket_labels(value: Value) -> str | None:
    """Whether every part is `region:label=value`."""
    assert isinstance(value, tuple)
    try:
        for part in value:
            _parse_label(part)
    except ValueError as error:
        return str(error)
    return None


def bucket_labels(buckets: Iterable[str], labels: Iterable[str]) -> dict[str, Labels]:
    """{bucket: where it is}, from the values of `[tiered] buckets` and `bucket_labels`."""
    given: dict[str, dict[str, str]] = {
        name: {"region": name} for name in (parse_bucket(one).name for one in buckets)
    }
    for text in labels:
        name, label, value = _parse_label(text)
        if name in given:
            given[name][label] = value
    return {name: Labels.of(values) for name, values in given.items()}


def unknown_label_owner(buckets: Iterable[str], labels: Iterable[str]) -> str | None:
    """A region in `bucket_labels` that has no bucket; None if there is none."""
    names: Mapping[str, None] = dict.fromkeys(parse_bucket(one).name for one in buckets)
    return next((name for name, *_ in map(_parse_label, labels) if name not in names), None)


def _parse_label(text: str) -> tuple[str, str, str]:
    name, colon, rest = text.partition(":")
    label, sign, value = rest.partition("=")
    if not colon or not sign or not all((name, label, value)):
        raise ValueError(f"must look like region:label=value, as in east:country=us, not {text!r}")
    if label == "region":
        raise ValueError(f"must not set the label region, which is the bucket's name: {text!r}")
    for part in (name, label, value):
        reason = check_label(part)
        if reason is not None:
            raise ValueError(reason)
    return name, label, value


def _check_options(options: Mapping[str, str]) -> None:
    endpoint = options.get("endpoint", "")
    if endpoint and (not endpoint.startswith(("http://", "https://")) or "@" in endpoint):
        raise ValueError(f"has an endpoint that is no http or https URL: {_shown(endpoint)!r}")
    virtual_host = options.get("virtual_host", "false")
    if virtual_host not in ("true", "false"):
        raise ValueError(f"has virtual_host={_shown(virtual_host)!r}: give true or false")
    ca_file = options.get("ca_file", "/")
    if not ca_file.startswith("/"):
        raise ValueError(f"has ca_file={_shown(ca_file)!r}: give an absolute path")
    if ca_file != "/" and endpoint.startswith("http://"):
        raise ValueError("has ca_file and an endpoint without TLS: give an https:// endpoint")


def _schemes() -> str:
    names = [f"{scheme}://" for scheme in OPTIONS]
    return ", ".join(names[:-1]) + f" or {names[-1]}"


def _shown(text: str) -> str:
    """A URL as an error may show it: without what may be a password, and not long."""
    head, at, tail = text.rpartition("@")
    scheme = head.partition("://")[0]
    shown = f"{scheme}://...@{tail}" if at else text
    return shown.partition("?")[0][:200]
