"""What each broker may take of a budget is never more than the whole.

Source: docs/decisions/0010-the-balancer.md ("Budget")."""

from hypothesis import given
from hypothesis import strategies as st

from strandline.controller.placing.copy_shares import HELD_MS, VALID_MS, WHOLE, Shares
from strandline.model.ids import BrokerId

CLAIM_INTERVAL_MS = 500
LINK = ("link",)


def opened() -> Shares:
    return Shares(-HELD_MS)


def test_who_claims_alone_has_all_of_it() -> None:
    shares = opened()
    assert shares.claim(0, BrokerId(1), LINK) == {"link": WHOLE}
    assert shares.claim(500, BrokerId(1), ("link", "all")) == {"link": WHOLE, "all": WHOLE}
    assert shares.claim(600, BrokerId(2), ("all",)) == {"all": 0}


def test_who_comes_later_waits_for_what_the_others_hold_and_has_as_much_then() -> None:
    shares = opened()
    shares.claim(0, BrokerId(1), LINK)
    assert shares.claim(100, BrokerId(2), LINK) == {"link": 0}
    for now in range(500, HELD_MS + 1_000, CLAIM_INTERVAL_MS):
        assert shares.claim(now, BrokerId(1), LINK) == {"link": WHOLE // 2}
        last = shares.claim(now + 100, BrokerId(2), LINK)
    assert last == {"link": WHOLE // 2}
    assert shares.held(now + 100) == {"link": {BrokerId(1): WHOLE // 2, BrokerId(2): WHOLE // 2}}


def test_who_claims_no_more_leaves_its_share_to_the_others() -> None:
    shares = opened()
    for now in range(0, HELD_MS + 1, CLAIM_INTERVAL_MS):
        shares.claim(now, BrokerId(1), LINK)
        shares.claim(now, BrokerId(2), LINK)
    end = now + HELD_MS
    assert shares.claim(end - 1, BrokerId(2), LINK) == {"link": WHOLE // 2}
    assert shares.claim(end, BrokerId(2), LINK) == {"link": WHOLE}
    assert shares.held(end + HELD_MS) == {}


def test_a_new_controller_waits_until_what_the_last_one_granted_has_ended() -> None:
    shares = Shares(10_000)
    assert shares.claim(10_000 + HELD_MS - 1, BrokerId(1), LINK) == {"link": 0}
    assert shares.claim(10_000 + HELD_MS, BrokerId(1), LINK) == {"link": WHOLE}


claims = st.lists(
    st.tuples(st.integers(0, 1_500), st.integers(1, 4), st.integers(0, 900)), max_size=60
)


@given(claims)
def test_what_brokers_may_use_at_any_time_is_never_more_than_the_whole(
    drawn: list[tuple[int, int, int]],
) -> None:
    """Claims come after (ms), of a broker, and were (ms) on their way: from when they were sent
    their shares are used, and any answer may be lost, so that an older one still holds."""
    shares = opened()
    used: list[tuple[int, int, int, int]] = []
    now = 0
    for after_ms, broker, way_ms in drawn:
        now += after_ms
        parts = shares.claim(now, BrokerId(broker), LINK)["link"]
        used.append((now, now - way_ms + VALID_MS, broker, parts))
    for at, *_ in used:
        held: dict[int, int] = {}
        for begin, end, broker, parts in used:
            if begin <= at < end:
                held[broker] = max(held.get(broker, 0), parts)
        assert sum(held.values()) <= WHOLE
