"""Where a topic's table may lie: below the first location that the topic's residency allows.

Why:    a law that binds the replicas of a topic binds a copy of its records in a lake too.
How:    `--location PLACE=URI`, PLACE being a region or labels (`region:eu-west,country:de`); the
        residency of the topic's placement policy decides as it does for buckets.
Source: decisions/0008, decisions/0055."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from strandline.base.errors import OperatorError
from strandline.model.cluster import Labels
from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.locations import absolute_location
from strandline.placement.constraints.residency import banned_by
from strandline.placement.policy.document import Residency
from strandline.placement.policy.text import decode_policy

POLICY_KEY = "placement.policy"
_LABEL = r"[A-Za-z0-9._/-]+"
_PLACE = re.compile(rf"({_LABEL}|{_LABEL}:{_LABEL}(,{_LABEL}:{_LABEL})*)=(.+)")


@dataclass(frozen=True, slots=True)
class Location:
    """A directory or URI for tables, and the labels of the place where it is."""

    text: str
    """As given, for errors."""
    labels: Labels
    uri: str


def parse_locations(words: Sequence[str]) -> tuple[Location, ...]:
    """`REGION=URI` or `LABEL:VALUE,...=URI`, each."""
    found = []
    for word in words:
        match = _PLACE.fullmatch(word)
        if match is None:
            raise OperatorError(
                f"--location {word}: expected REGION=URI or LABEL:VALUE,LABEL:VALUE=URI"
            )
        place = match[1]
        pairs = [each.partition(":")[::2] for each in place.split(",")] if ":" in place else []
        labels = dict(pairs) or {"region": place}
        found.append(Location(place, Labels.of(labels), absolute_location(match[3]).rstrip("/")))
    uris = [each.uri for each in found]
    for uri in uris:
        if uris.count(uri) > 1:
            raise OperatorError(f"--location: {uri} is given twice, and can be in one place only")
    return tuple(found)


def residency_of(topic: str, policy: str) -> Residency:
    """The residency of a topic with this policy text; "" is no policy."""
    if not policy:
        return Residency()
    return decode_policy(policy, source=f"the policy of {topic}").residency


def allowed_location(
    topic: str, residency: Residency, locations: Sequence[Location]
) -> Location | None:
    """The first location where the topic's data may be; None if it may be anywhere. OperatorError
    if no location is allowed."""
    if not residency.allow and not residency.deny:
        return None
    reasons = []
    for location in locations:
        reason = banned_by(residency, location.labels)
        if reason is None:
            return location
        reasons.append(f"{location.text}: {reason}")
    raise OperatorError(
        f"the residency of topic {topic} allows no --location ({'; '.join(reasons)}): give one "
        "where its data may be"
    )


def tables_by_residency(
    options: LakeOptions, policies: Mapping[str, str], locations: Sequence[Location]
) -> list[LakeOptions]:
    """One table for each topic: below its location, or below the job's table if its data may be
    anywhere. Dead letters lie beside the table, for they are the topic's data too."""
    tables = []
    for topic in options.topics:
        place = allowed_location(topic, residency_of(topic, policies.get(topic, "")), locations)
        table = f"{options.table if place is None else place.uri}/{topic}"
        tables.append(
            replace(
                options,
                topics=(topic,),
                table=table,
                name=f"{options.name}-{topic}" if options.name else "",
                dead_letters=None if options.dead_letters is None else f"{table}_dead",
            )
        )
    return tables
