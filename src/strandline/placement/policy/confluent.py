"""Reads Confluent's `confluent.placement.constraints`, versions 1 and 2, as it is.

Why:    topics of multi-region clusters carry this JSON, and tools write it. A migration must not
        require users to rewrite it.
How:    each entry of `replicas` is a voter rule, each of `observers` an observer rule; its only
        key, `rack`, is Kafka's `broker.rack`. Version 1 knows no promotion policy and behaves as
        `leader-is-observer`; version 2 defaults to `under-min-isr`.
Source: Confluent's documentation of multi-region clusters (reference to observers, 4.1)."""

from typing import Annotated, Literal

import msgspec

from strandline.base.errors import OperatorError
from strandline.placement.policy.checks import check_policy
from strandline.placement.policy.document import (
    KAFKA_RACK_LABEL,
    REPLICAS_MAX,
    Policy,
    Promotion,
    Role,
    Rule,
    Selector,
)
from strandline.placement.policy.text import decode_policy, read_as, read_document

CONFIG = "confluent.placement.constraints"
USE_DEFAULT = -1
_PROMOTIONS: tuple[Promotion, ...] = ("under-min-isr", "under-replicated", "leader-is-observer")
_EXAMPLE = '{"version": 2, "replicas": [{"count": 3, "constraints": {"rack": "us-west-a"}}]}'


class _Constraints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rack: str


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: Annotated[int, msgspec.Meta(ge=1, le=REPLICAS_MAX)]
    constraints: _Constraints


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    version: Literal[1, 2]
    replicas: tuple[_Entry, ...]
    observers: tuple[_Entry, ...] = ()
    observer_promotion_policy: str | None = None


def import_confluent(text: str, *, source: str = CONFIG) -> Policy:
    """The policy that the JSON stands for; raises OperatorError with one line."""
    document = read_as(_Document, text, source=source, example=_EXAMPLE)
    if not document.replicas:
        raise OperatorError(f"{source}: replicas is empty: say where the replicas go")
    promotion = _promotion(document, source)
    if document.version == 1 and promotion is not None:
        raise OperatorError(
            f"{source}: observerPromotionPolicy needs version 2: version 1 never promotes by itself"
        )
    rules = _rules(document.replicas, "voter", source) + _rules(
        document.observers, "observer", source
    )
    default: Promotion = "leader-is-observer" if document.version == 1 else "under-min-isr"
    policy = Policy(rules=rules, promotion=(promotion or default) if document.observers else "")
    try:
        check_policy(policy)
    except OperatorError as error:
        raise OperatorError(f"{source}: {error}") from None
    return policy


def _promotion(document: _Document, source: str) -> Promotion | None:
    """As it is written, if it is."""
    wanted = document.observer_promotion_policy
    found = next((one for one in _PROMOTIONS if one == wanted), None)
    if wanted is not None and found is None:
        raise OperatorError(
            f"{source}: observerPromotionPolicy {wanted[:80]!r}: "
            f"write {', '.join(_PROMOTIONS[:-1])} or {_PROMOTIONS[-1]}"
        )
    return found


def decode_either(text: str, *, source: str) -> Policy:
    """A policy from a file: ours, or Confluent's JSON, which alone has a version; raises
    OperatorError with one line."""
    if "version" in read_document(text, source=source):
        return import_confluent(text, source=source)
    return decode_policy(text, source=source)


def check_replication_factor(policy: Policy, replication_factor: int, *, config: str) -> None:
    """Refuse a replication factor beside a policy that requires another number of replicas.

    -1 leaves it to the policy. Raises OperatorError with the text that tools know."""
    fixed = policy.fixed_replicas()
    if fixed is None or replication_factor in (USE_DEFAULT, fixed):
        return
    raise OperatorError(
        f"Both replicationFactor and {config} are set. Both cannot be used at the same time. "
        f"Leave the replication factor at -1 (the policy asks for {fixed} replicas)."
    )


def _rules(entries: tuple[_Entry, ...], role: Role, source: str) -> tuple[Rule, ...]:
    racks = [entry.constraints.rack for entry in entries]
    for rack in racks:
        if racks.count(rack) > 1:
            raise OperatorError(
                f"{source}: rack {rack!r} is there twice among the {role}s: add up its counts"
            )
    return tuple(
        Rule(
            role=role,
            count=entry.count,
            where=(Selector(KAFKA_RACK_LABEL, "in", (entry.constraints.rack,)),),
        )
        for entry in entries
    )
