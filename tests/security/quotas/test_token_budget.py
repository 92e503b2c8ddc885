"""Tokens for changes of topics. Source: KIP-599 ("Token bucket algorithm")."""

from hypothesis import given
from hypothesis import strategies as st

from strandline.security.quotas.token_budget import BURST_MS, TokenBudget


def test_a_large_change_is_allowed_and_the_next_one_waits_for_its_debt() -> None:
    """KIP-599's example: the quota is 5 per second, and a topic has 150 partitions."""
    budget = TokenBudget(5, now_ms=0)
    assert budget.wait_ms(0) == 0
    budget.spend(150, 0)
    assert budget.wait_ms(0) == (150 - 5 * BURST_MS // 1_000) * 1_000 // 5
    assert budget.wait_ms(18_999) > 0
    assert budget.wait_ms(19_000) == 0


def test_another_limit_counts_at_once_and_forgives_no_debt() -> None:
    budget = TokenBudget(1, now_ms=0)
    budget.spend(111, 0)
    assert budget.wait_ms(0) == 100_000
    budget.set_limit(100, 0)
    assert budget.wait_ms(0) == 1_000
    budget.set_limit(1, 60_000)
    assert budget.wait_ms(60_000) == 0
    budget.spend(12, 60_000)
    assert budget.wait_ms(60_000) == 1_000


@given(
    st.floats(0.5, 100),
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 50)), max_size=60),
)
def test_no_more_is_spent_than_the_burst_the_rate_and_one_change(
    limit: float, asked: list[tuple[int, int]]
) -> None:
    budget, now_ms, spent, largest = TokenBudget(limit, now_ms=0), 0, 0, 0
    for pause_ms, count in asked:
        now_ms += pause_ms
        if not budget.wait_ms(now_ms):
            budget.spend(count, now_ms)
            spent, largest = spent + count, max(largest, count)
        assert spent <= limit * (BURST_MS + now_ms) / 1_000 + largest + 1
