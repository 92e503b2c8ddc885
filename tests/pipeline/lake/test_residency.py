"""A topic's table lies where the topic's residency allows it, or nowhere.

Source: decisions/0055, docs/pipelines/upkeep.md."""

from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.lake.residency import parse_locations, tables_by_residency

EUROPE = '{"residency":{"allow":[{"label":"region","op":"in","values":["eu-west","eu-north"]}]}}'
GERMANY = '{"residency":{"allow":[{"label":"country","op":"in","values":["de"]}]}}'
NOT_US = '{"residency":{"deny":[{"label":"region","op":"in","values":["us"]}]}}'
SPREAD = '{"survive":["region"]}'
LOCATIONS = parse_locations(["us=s3a://us/lake", "region:eu-west,country:de=s3a://eu/lake/"])


def job(*topics: str, dead_letters: str | None = None) -> LakeOptions:
    return LakeOptions(
        bootstrap="127.0.0.1:9092", topics=topics, table="/lake", dead_letters=dead_letters
    )


def places(**policies: str) -> list[str]:
    return [each.table for each in tables_by_residency(job(*policies), policies, LOCATIONS)]


def test_each_topic_goes_to_the_first_location_that_its_residency_allows() -> None:
    assert places(orders=EUROPE, people=GERMANY, logs=NOT_US, plain=SPREAD, none="") == [
        "s3a://eu/lake/orders",
        "s3a://eu/lake/people",
        "s3a://eu/lake/logs",
        "/lake/plain",
        "/lake/none",
    ]


def test_a_topic_that_may_be_at_no_location_is_refused() -> None:
    only_us = parse_locations(["us=s3a://us/lake"])
    with pytest.raises(
        OperatorError,
        match=r"the residency of topic orders allows no --location \(us: region is not in "
        r"\[eu-west, eu-north\]\): give one",
    ):
        tables_by_residency(job("orders"), {"orders": EUROPE}, only_us)
    with pytest.raises(OperatorError, match="us: has no label country"):
        tables_by_residency(job("people"), {"people": GERMANY}, only_us)


def test_dead_letters_stay_with_their_table() -> None:
    (table,) = tables_by_residency(
        job("orders", dead_letters="/elsewhere"), {"orders": EUROPE}, LOCATIONS
    )
    assert table.dead_letters == "s3a://eu/lake/orders_dead"
    assert table.topics == ("orders",)


def test_a_policy_that_cannot_be_read_is_no_permission() -> None:
    with pytest.raises(OperatorError, match="the policy of orders"):
        tables_by_residency(job("orders"), {"orders": '{"residencies":{}}'}, LOCATIONS)


@pytest.mark.parametrize("word", ["eu", "=/lake", "eu=", "a:b:c=/lake", "region:eu,de=/lake"])
def test_locations_that_mean_nothing_are_refused(word: str) -> None:
    with pytest.raises(OperatorError, match=f"--location {word}: expected REGION=URI"):
        parse_locations([word])


def test_one_location_cannot_be_in_two_places(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="given twice"):
        parse_locations([f"eu={tmp_path}", f"us={tmp_path}/"])
