"""Which quota counts for a client: Kafka's eight levels, in any combination.

Source: Kafka 4.3's DefaultQuotaCallback; KIP-55."""

from hypothesis import given
from hypothesis import strategies as st

from strandline.security.quotas.entities import entity_of
from strandline.security.quotas.precedence import Applicable, applicable

LEVELS = (
    (entity_of([("user", "u"), ("client-id", "c")]), ("u", "c")),
    (entity_of([("user", "u"), ("client-id", None)]), ("u", "c")),
    (entity_of([("user", "u")]), ("u", None)),
    (entity_of([("user", None), ("client-id", "c")]), ("u", "c")),
    (entity_of([("user", None), ("client-id", None)]), ("u", "c")),
    (entity_of([("user", None)]), ("u", None)),
    (entity_of([("client-id", "c")]), (None, "c")),
    (entity_of([("client-id", None)]), (None, "c")),
)
"""(entity, who shares its quota), the one that counts first."""
OTHERS = (
    entity_of([("user", "v")]),
    entity_of([("client-id", "d")]),
    entity_of([("user", "v"), ("client-id", "c")]),
    entity_of([("ip", "10.0.0.1")]),
)


@given(st.sets(st.sampled_from(range(8))), st.sets(st.sampled_from(range(8))))
def test_the_first_level_with_the_key_counts(present: set[int], with_other_key: set[int]) -> None:
    quotas: dict[object, dict[str, float]] = {entity: {"k": 99.0} for entity in OTHERS}
    for level in present | with_other_key:
        entity, _ = LEVELS[level]
        quotas[entity] = {"k": float(level)} if level in present else {}
        if level in with_other_key:
            quotas[entity]["other"] = 1.0
    found = applicable(quotas, "k", user="u", client_id="c")  # type: ignore[arg-type]
    if not present:
        assert found is None
    else:
        first = min(present)
        assert found == Applicable(float(first), LEVELS[first][1])


def test_a_client_without_a_client_id_is_covered_by_the_defaults() -> None:
    quotas = {entity_of([("client-id", None)]): {"k": 5.0}}
    assert applicable(quotas, "k", user="u", client_id="") == Applicable(5.0, (None, ""))
