"""The buckets of a broker's file: what is read, and what is refused in which words."""

import pytest

from strandline.config.bucket_urls import (
    BucketUrl,
    bucket_labels,
    check_bucket_labels,
    check_buckets,
    parse_bucket,
)
from strandline.config.load import load_broker_config, read_broker_config
from strandline.model.cluster import Labels

LEAST = '[broker]\nid = 1\ndata_directory = "/d"\n[cluster]\nseeds = ["1@127.0.0.1:33145"]\n'


@pytest.mark.parametrize(
    ("text", "bucket", "shown"),
    [
        (
            "east=file:///var/buckets/east/",
            BucketUrl("east", "file", "/var/buckets/east"),
            "file:///var/buckets/east",
        ),
        (
            "eu-1=s3://logs/prod/a/?region=eu-west-1&endpoint=http://127.0.0.1:9000",
            BucketUrl(
                "eu-1",
                "s3",
                "logs",
                "prod/a",
                (("endpoint", "http://127.0.0.1:9000"), ("region", "eu-west-1")),
            ),
            "s3://logs/prod/a",
        ),
        ("w=gs://logs", BucketUrl("w", "gs", "logs"), "gs://logs"),
        (
            "w=az://logs/x?account=acme",
            BucketUrl("w", "az", "logs", "x", (("account", "acme"),)),
            "az://logs/x",
        ),
    ],
)
def test_a_bucket_is_read(text: str, bucket: BucketUrl, shown: str) -> None:
    assert parse_bucket(text) == bucket
    assert str(bucket) == shown


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s3://logs", "must look like region=url"),
        ("east", "must look like region=url"),
        ("=file:///x", "names a region that is empty"),
        ("e st=file:///x", "names a region that must be 1 to 63"),
        ("east=ftp://logs", "must be a URL of file://, s3://, gs:// or az://, not 'ftp://logs'"),
        ("east=file://x", "must name a directory as in file:///var/buckets"),
        ("east=file:///", "must name a directory"),
        ("east=file:///a/../b", "must name a directory"),
        ("east=file:///a?region=x", "a file URL may have: none"),
        ("east=s3:///x", "must name a bucket as in s3://bucket/prefix"),
        ("east=s3://logs/a//b", "must name a bucket"),
        ("east=s3://logs/../b", "must name a bucket"),
        ("east=s3://logs?regoin=x", "has the option 'regoin'; a s3 URL may have: region"),
        ("east=s3://logs?region=a&region=b", "gives an option twice"),
        ("east=s3://logs?endpoint=127.0.0.1", "has an endpoint that is no http or https URL"),
        ("east=s3://logs?virtual_host=yes", "has virtual_host='yes': give true or false"),
        ("east=s3://logs?ca_file=ca.pem", "has ca_file='ca.pem': give an absolute path"),
        (
            "east=s3://logs?endpoint=http://store&ca_file=/ca.pem",
            "has ca_file and an endpoint without TLS",
        ),
        ("east=gs://logs?ca_file=/ca.pem", "a gs URL may have: none"),
        ("east=s3://logs/a b", "has no URL of at most"),
    ],
)
def test_what_is_no_bucket_is_refused(text: str, reason: str) -> None:
    assert reason in (check_buckets((text,)) or "")


@pytest.mark.parametrize(
    "text",
    [
        "east=s3://AKIAID:topsecret@logs/x",
        "east=s3://logs?endpoint=http://me:topsecret@127.0.0.1",
        "east=s3://logs?secret_access_key=topsecret",
    ],
)
def test_a_password_is_refused_and_not_shown(text: str) -> None:
    reason = check_buckets((text,))
    assert reason is not None and "topsecret" not in reason


def test_a_region_and_a_place_come_once() -> None:
    assert check_buckets(("a=file:///x", "b=file:///y")) is None
    assert check_buckets(("a=file:///x", "a=file:///y")) == "gives the region a twice"
    assert check_buckets(("a=file:///x", "b=file:///x")) == "gives the place file:///x twice"


def test_a_bucket_has_its_region_and_the_labels_that_are_given() -> None:
    buckets = ("east=file:///x", "west=file:///y")
    assert check_bucket_labels(("east:country=us",)) is None
    assert bucket_labels(buckets, ("east:country=us",)) == {
        "east": Labels(region="east", free=(("country", "us"),)),
        "west": Labels(region="west"),
    }
    for text in ("east", "east:country", "east:=us", "east:region=west", ":country=us"):
        assert check_bucket_labels((text,)) is not None, text


def test_the_section_gives_the_buckets() -> None:
    config = load_broker_config(
        LEAST + '[tiered]\nbuckets = ["east=file:///x"]\nbucket_labels = ["east:country=us"]\n',
        file="f",
    )
    assert config.tiered.is_enabled
    assert [one.name for one in config.tiered.bucket_urls] == ["east"]
    assert config.tiered.labels_of_buckets["east"].get("country") == "us"
    assert not load_broker_config(LEAST, file="f").tiered.is_enabled


def test_labels_of_a_bucket_that_is_not_there_are_refused() -> None:
    text = LEAST + '[tiered]\nbuckets = ["east=file:///x"]\nbucket_labels = ["wets:country=us"]\n'
    config, mistakes = read_broker_config(text, file="f")
    assert config is None
    assert [str(one) for one in mistakes] == [
        "f: [tiered] bucket_labels: names the bucket wets, which is not among buckets"
    ]
