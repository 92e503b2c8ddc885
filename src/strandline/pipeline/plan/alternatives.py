"""The alternatives that a plan compares: policies by file, by text or by a short name; placed.

Why:    "3+2+1 or 2+2+1?" should be typed as that.
How:    an alternative is [NAME=]POLICY[,KEY=VALUE...], where POLICY is

            a file          as for `strandline policy test`: JSON or YAML, ours or Confluent's
            {...}           the same as text
            3+2+1           voters by region, the regions in the order of the cluster file;
                            3+2+1o: the last number counts observers, which stand in for voters
            rf3             three voters, spread as evenly as can be
            survive REGION  a policy with this goal alone: "survive region and one more broker"

        and keys are min-insync (default 1), replicas, promotion and placement. `placement=2` draws
        other brokers by the same policy: a second placement to compare.
Source: docs/pipelines/plan.md."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import get_args

import msgspec

from strandline.base.errors import OperatorError
from strandline.base.rng import seeded
from strandline.config.cluster import ClusterConfig
from strandline.controller.outages.regions import regions_of
from strandline.model.cluster import Roles
from strandline.placement.policy.confluent import decode_either
from strandline.placement.policy.document import Policy, Promotion, Rule, Selector
from strandline.placement.policy.text import decode_policy
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.request import DEFAULT_VOTERS, Request
from strandline.placement.solver.solve import solve
from strandline.placement.survival.courses import REGION_LOST, Rules
from strandline.placement.survival.regions import Regions
from strandline.placement.survival.replicas import Replica
from strandline.placement.topology.described import DescribedCluster

ALTERNATIVES_MAX = 32
REPLICAS_MAX = 15
_BY_REGION = re.compile(r"\d{1,2}o?(\+\d{1,2}o?)*")
_SPREAD = re.compile(r"rf(\d{1,2})")
_KEYS = ("min-insync", "replicas", "promotion", "placement")
_SHAPE = "[NAME=]POLICY[,min-insync=N][,replicas=N][,promotion=WHEN][,placement=N]"


@dataclass(frozen=True, slots=True)
class Alternative:
    """A policy and the settings beside it, not placed yet."""

    name: str
    request: Request
    has_policy: bool
    placement: int = 1
    """Seed of the placement."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An alternative with its partitions, and the rules by which they go on after losses."""

    alternative: Alternative
    partitions: tuple[Roles, ...]
    rules: Rules

    @property
    def name(self) -> str:
        """As given."""
        return self.alternative.name


def parse_alternatives(words: Sequence[str], cluster: DescribedCluster) -> list[Alternative]:
    """Read what the command was given; raises OperatorError with one line."""
    if not words:
        raise OperatorError("nothing to compare: give --policy at least once")
    if len(words) > ALTERNATIVES_MAX:
        raise OperatorError(f"{len(words)} policies: compare at most {ALTERNATIVES_MAX}")
    found = [_parse(word, cluster) for word in words]
    names = [one.name for one in found]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise OperatorError(f"--policy {twice}: given twice: give them names: NAME={twice}")
    return found


def _parse(word: str, cluster: DescribedCluster) -> Alternative:
    name, text, keys = _split(word)
    policy, voters, has_policy = _policy(text, cluster, word)
    if "promotion" in keys:
        if keys["promotion"] not in get_args(Promotion) or not keys["promotion"]:
            among = ", ".join(one for one in get_args(Promotion) if one)
            raise OperatorError(f"--policy {word}: promotion={keys['promotion']}: write {among}")
        policy = msgspec.structs.replace(policy, promotion=keys["promotion"])
    request = Request(
        policy=policy,
        min_insync_replicas=_count(keys, "min-insync", word, default=1),
        default_voters=_count(keys, "replicas", word, default=voters),
        round_trips=cluster.round_trips,
    )
    placement = _count(keys, "placement", word, default=1)
    return Alternative(name, request, has_policy=has_policy, placement=placement)


def _split(word: str) -> tuple[str, str, dict[str, str]]:
    """(name, policy, {key: value})."""
    keys: dict[str, str] = {}
    rest = word.strip()
    while (at := rest.rfind(",")) > 0:
        key, is_pair, value = rest[at + 1 :].partition("=")
        if not is_pair or key.strip() not in _KEYS:
            break
        keys[key.strip()] = value.strip()
        rest = rest[:at]
    name, is_named, text = rest.partition("=")
    if not is_named or "{" in name or Path(rest).exists():
        return word.strip(), rest, keys
    name, text = name.strip(), text.strip()
    if "," in name or ("," in text and "{" not in text and not Path(text).exists()):
        raise _unknown_key(rest, word)
    if not name or not text:
        raise OperatorError(f"--policy {word}: write {_SHAPE}")
    return name, text, keys


def _unknown_key(rest: str, word: str) -> OperatorError:
    """What the last `,KEY=VALUE` of `rest` should be: a name has no comma."""
    key = rest.rpartition(",")[2].partition("=")[0].strip()
    near = get_close_matches(key, _KEYS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"write {_SHAPE}"
    return OperatorError(f"--policy {word}: unknown key {key!r}: {hint}")


def _policy(text: str, cluster: DescribedCluster, word: str) -> tuple[Policy, int, bool]:
    """(policy, voters if it does not say, whether it is one of the topic's own)."""
    if text.startswith("{"):
        return decode_policy(text, source=f"--policy {word}"), DEFAULT_VOTERS, True
    file = Path(text)
    if file.is_file():
        try:
            read = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise OperatorError(f"--policy {text}: cannot read: {error}") from error
        return decode_either(read, source=text), DEFAULT_VOTERS, True
    if _BY_REGION.fullmatch(text):
        return _by_region(text, cluster, word), DEFAULT_VOTERS, True
    if found := _SPREAD.fullmatch(text):
        voters = int(found[1])
        if not 1 <= voters <= REPLICAS_MAX:
            raise OperatorError(f"--policy {word}: write rf1 to rf{REPLICAS_MAX}")
        return Policy(distinct_host=False), voters, False
    if text.startswith("survive "):
        document = msgspec.json.encode({"survive": text.removeprefix("survive ")}).decode()
        return decode_policy(document, source=f"--policy {word}"), DEFAULT_VOTERS, True
    raise OperatorError(
        f"--policy {word}: there is no file {text!r}, and it is no policy: write a file, 3+2+1 "
        "(voters by region), rf3 (three anywhere), or survive region"
    )


def _by_region(text: str, cluster: DescribedCluster, word: str) -> Policy:
    regions = list(dict.fromkeys(one.labels.region for one in cluster.candidates))
    parts = text.split("+")
    if len(parts) > len(regions) or "" in regions:
        raise OperatorError(
            f"--policy {word}: {len(parts)} regions, and the cluster's brokers are in "
            f"{', '.join(filter(None, regions)) or 'none'}"
        )
    rules = tuple(
        Rule(
            role="observer" if part.endswith("o") else "voter",
            count=int(part.rstrip("o")),
            where=(Selector(label="region", op="in", values=(region,)),),
        )
        for part, region in zip(parts, regions, strict=False)
        if int(part.rstrip("o"))
    )
    total = sum(one.count or 0 for one in rules)
    if not any(one.role == "voter" for one in rules) or total > REPLICAS_MAX:
        raise OperatorError(f"--policy {word}: write 1 to {REPLICAS_MAX} replicas, one that votes")
    has_observers = any(one.role == "observer" for one in rules)
    return Policy(rules=rules, promotion="under-min-isr" if has_observers else "")


def _count(keys: dict[str, str], key: str, word: str, *, default: int) -> int:
    text = keys.get(key, str(default))
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:4]) <= REPLICAS_MAX):
        raise OperatorError(f"--policy {word}: {key}={text}: write 1 to {REPLICAS_MAX}")
    return int(text)


def place(
    one: Alternative,
    cluster: DescribedCluster,
    *,
    partitions: int,
    config: ClusterConfig,
    controllers: Sequence[int] = (),
) -> Placed:
    """Place the partitions as the controller would; raises OperatorError if it would refuse."""
    found = solve(one.request, cluster.candidates, partitions=partitions, rng=seeded(one.placement))
    if isinstance(found, Refusal):
        lines = list(found.lines())
        raise OperatorError(f"--policy {one.name}: {lines[0]}", lines[1:])
    promotion = one.request.policy.promotion
    return Placed(
        alternative=one,
        partitions=tuple(Roles(each.voters, each.observers) for each in found.partitions),
        rules=Rules(
            min_insync_replicas=one.request.min_insync_replicas,
            shrinks=bool(promotion),
            controllers=_controllers(cluster, controllers),
            promotion=promotion,
            regions=regions_of({one.id: one.labels for one in cluster.candidates}, config)
            if promotion == REGION_LOST
            else Regions(),
        ),
    )


def _controllers(cluster: DescribedCluster, ids: Sequence[int]) -> tuple[Replica, ...]:
    labels = {int(one.id): one for one in cluster.candidates}
    unknown = [one for one in ids if one not in labels]
    if unknown:
        raise OperatorError(f"controllers: the cluster has no broker {unknown[0]}")
    return tuple(Replica(labels[one].id, labels[one].labels) for one in ids)
