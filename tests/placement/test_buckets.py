"""The buckets that may hold a topic's data, by its placement policy."""

import pytest

from strandline.model.cluster import Labels
from strandline.placement.buckets import allowed_buckets
from strandline.placement.policy.confluent import import_confluent
from strandline.placement.policy.text import decode_policy

BUCKETS = {
    "east": Labels(region="east", free=(("country", "us"),)),
    "west": Labels(region="west", free=(("country", "us"),)),
    "eu": Labels(region="eu"),
}
ALL = ("east", "west", "eu")


def allowed(text: str) -> tuple[str, ...]:
    return allowed_buckets(decode_policy(text, source="policy"), BUCKETS)


def test_without_a_policy_every_bucket_is_allowed() -> None:
    assert allowed_buckets(None, BUCKETS) == ALL
    assert allowed("{}") == ALL


@pytest.mark.parametrize(
    ("residency", "names"),
    [
        ('{"allow":[{"label":"region","op":"in","values":["eu"]}]}', ("eu",)),
        ('{"deny":[{"label":"region","op":"in","values":["eu"]}]}', ("east", "west")),
        ('{"allow":[{"label":"country","op":"in","values":["us"]}]}', ("east", "west")),
        # Nothing says in which country that of eu is.
        ('{"deny":[{"label":"country","op":"in","values":["de"]}]}', ("east", "west")),
        ('{"allow":[{"label":"zone","op":"in","values":["a"]}]}', ()),
    ],
)
def test_a_residency_binds_buckets(residency: str, names: tuple[str, ...]) -> None:
    assert allowed(f'{{"residency":{residency}}}') == names


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        (
            '[{"role":"voter","count":3,"where":[{"label":"region","op":"in",'
            '"values":["east","west"]}]}]',
            ("east", "west"),
        ),
        (
            '[{"role":"voter","count":3,"where":[{"label":"region","op":"in","values":["east"]}]},'
            '{"role":"observer","count":1,"where":[{"label":"region","op":"in",'
            '"values":["eu"]}]}]',
            ("east", "eu"),
        ),
        (
            '[{"role":"voter","count":3,"level":"soft","where":[{"label":"region","op":"in",'
            '"values":["east"]}]}]',
            ALL,
        ),
        # A rule about disks is about machines.
        ('[{"role":"voter","count":3,"where":[{"label":"disk","op":"in","values":["ssd"]}]}]', ALL),
    ],
)
def test_a_bucket_is_where_a_replica_may_be(rules: str, names: tuple[str, ...]) -> None:
    assert allowed(f'{{"rules":{rules}}}') == names


def test_confluents_constraints_bind_buckets() -> None:
    text = (
        '{"version":2,"replicas":[{"count":3,"constraints":{"rack":"east"}}],'
        '"observers":[{"count":1,"constraints":{"rack":"west"}}]}'
    )
    assert allowed_buckets(import_confluent(text, source="x"), BUCKETS) == ("east", "west")
