"""The keys of a broker's file that must have the same value on all brokers of a cluster.

Why:    no broker reads the file of another one. A value that differs weakens a promise of the
        cluster, and no request fails for it at once.
How:    a row for each key: its name, and what happens while values differ. Values are texts, as
        DescribeConfigs tells them. The order of a list does not count. What differs is judged by
        its harm now: brokers are restarted one after the other, so a key may have two values for
        a while where its page says so.
Owns:   nothing.
Source: the keys' own words in docs/reference/broker-config.md; decision 0073."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

LEASE_PERCENT = 85
"""A leader's lease, of its own `election_timeout_ms`."""
Values = Mapping[str, str]
"""{key of one broker: value}"""


class Harm(StrEnum):
    """Whether different values do harm now."""

    WRONG = "wrong"
    """They weaken a promise of the cluster."""
    NOTE = "note"
    """They may differ like this while a change is under way."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A key whose values differ. `places`: {value: the brokers or files that have it}, the most
    frequent value first. `what`: what happens meanwhile."""

    harm: Harm
    key: str
    places: Mapping[str, Sequence[str]]
    what: str

    @property
    def usual(self) -> str | None:
        """The value of more places than any other one has; None if there is no such value."""
        counts = [len(one) for one in self.places.values()]
        return next(iter(self.places)) if counts[0] > counts[1] else None


@dataclass(frozen=True, slots=True)
class SharedKey:
    """A key of [section] that must agree. `what`: what happens while it does not. `judge`: the harm
    and the words for it where they depend on the values; it is given all brokers' keys.
    `is_list`: whether the value is a list, whose order does not count."""

    name: str
    what: str
    is_list: bool = False
    judge: Callable[[Sequence[Values]], tuple[Harm, str]] | None = None

    @property
    def title(self) -> str:
        """The key as the file has it: `[section] key`."""
        section, _, key = self.name.rpartition(".")
        return f"[{section}] {key}"

    def read(self, values: Values) -> str | None:
        """The value among a broker's keys, in a form that can be compared; None if it is missing,
        as from a broker of another release."""
        text = values.get(self.name)
        return text if text is None or not self.is_list else _listed(text)


def _listed(text: str) -> str:
    return ",".join(sorted({part.strip() for part in text.split(",") if part.strip()}))


def _judge_timeouts(brokers: Sequence[Values]) -> tuple[Harm, str]:
    """A leader counts its lease by its own value, a voter keeps its vote for that leader by the
    voter's."""
    found = sorted(int(one[TIMEOUT]) for one in brokers)
    least, most = found[0], found[-1]
    if LEASE_PERCENT * most < 100 * least:
        return Harm.NOTE, "leases hold while 0.85 x the largest is below the smallest"
    return Harm.WRONG, (
        "a deposed leader may answer stale reads for a moment, and voters with the largest value "
        "keep their votes for a dead leader that long"
    )


def _judge_rules(brokers: Sequence[Values]) -> tuple[Harm, str]:
    """These keys mean nothing while no broker enforces rules."""
    if any(one.get(ENFORCE) == "true" for one in brokers):
        return Harm.WRONG, _RULES
    return Harm.NOTE, "it counts once rules are enforced"


def _judge_seeds(brokers: Sequence[Values]) -> tuple[Harm, str]:
    """With an id of the cluster, the list says only where to ask."""
    if all(one.get("cluster.id") for one in brokers):
        return Harm.NOTE, "a broker that starts asks the brokers on its own list for the voters"
    return Harm.WRONG, "without [cluster] id the list names the cluster: brokers refuse each other"


TIMEOUT = "replication.election_timeout_ms"
ENFORCE = "access.enforce_rules"
_RULES = "brokers allow and refuse different things to the same client"
_TOKENS = "brokers take different tokens, or take one token for different users or groups"
SHARED_KEYS = (
    SharedKey("cluster.id", "brokers refuse each other"),
    SharedKey("cluster.seeds", "", is_list=True, judge=_judge_seeds),
    SharedKey(TIMEOUT, "", judge=_judge_timeouts),
    SharedKey(ENFORCE, _RULES),
    SharedKey("access.super_users", "", is_list=True, judge=_judge_rules),
    SharedKey("access.allow_without_rules", "", judge=_judge_rules),
    SharedKey("oauthbearer.expected_issuer", _TOKENS),
    SharedKey("oauthbearer.expected_audience", _TOKENS, is_list=True),
    SharedKey("oauthbearer.sub_claim_name", _TOKENS),
    SharedKey("oauthbearer.groups_claim_name", _TOKENS),
    SharedKey("oauthbearer.algorithms", _TOKENS, is_list=True),
    SharedKey(
        "security.webhook_hosts",
        "alarms are lost while a broker that does not list their host is the controller",
        is_list=True,
    ),
    SharedKey(
        "tiered.buckets",
        "a broker without a bucket uploads nothing to it, and lets local records go with fewer "
        "copies",
        is_list=True,
    ),
    SharedKey(
        "tiered.bucket_labels",
        "brokers judge differently which buckets a placement policy allows",
        is_list=True,
    ),
)
"""In the order of the file."""


def differences(brokers: Mapping[str, Values]) -> list[Difference]:
    """What differs, the harmful first. `brokers`: {broker or file: its keys}."""
    found = [*_of_keys(brokers), *_of_listeners(brokers)]
    return sorted(found, key=lambda one: tuple(Harm).index(one.harm))


def _of_keys(brokers: Mapping[str, Values]) -> Iterator[Difference]:
    for key in SHARED_KEYS:
        read = {place: key.read(values) for place, values in brokers.items()}
        places = _grouped({place: one for place, one in read.items() if one is not None})
        if len(places) < 2:
            continue
        telling = [values for place, values in brokers.items() if read[place] is not None]
        harm, what = (Harm.WRONG, key.what) if key.judge is None else key.judge(telling)
        yield Difference(harm, key.title, places, what)


def _of_listeners(brokers: Mapping[str, Values]) -> Iterator[Difference]:
    """The names of listeners: `NAME://host:port,...` is the value of `listeners`."""
    places = _grouped(
        {
            place: _listed(
                ",".join(one.partition("://")[0] for one in values["listeners"].split(","))
            )
            for place, values in brokers.items()
            if "listeners" in values
        }
    )
    if len(places) > 1:
        yield Difference(
            Harm.WRONG,
            "[[listener]] name",
            places,
            "clients of a listener do not see the brokers that lack it",
        )


def _grouped(values: Mapping[str, str]) -> dict[str, list[str]]:
    """{value: places}, the most frequent first; of equal ones, that of the earlier place."""
    counts = Counter(values.values())
    return {
        value: [place for place, one in values.items() if one == value]
        for value, _ in counts.most_common()
    }
