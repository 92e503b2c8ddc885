"""What a query may ask for, and the one line that refuses everything else.

Source: Spark's guide to its Kafka connector; decisions/0049."""

import json
import pickle
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.client.access import Access, AccessTransport
from strandline.client.wire.login import Login
from strandline.model.cluster import Address
from strandline.spark.columns import columns_of, schema_of
from strandline.spark.reading.bounds import EARLIEST, LATEST, Edge, Offsets, Time, Times
from strandline.spark.reading.option_table import OPTIONS, Use
from strandline.spark.reading.options import ReadOptions, parse_options
from strandline.spark.writing.options import parse_write_options

REQUIRED = {"kafka.bootstrap.servers": "a:1,b:2", "subscribe": "orders"}


def options(**given: str) -> ReadOptions:
    return parse_options({**REQUIRED, **{name.replace("__", "."): given[name] for name in given}})


def test_defaults_are_the_connector_s() -> None:
    found = options()
    assert found.columns == (
        *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType"),
    )
    assert found.starting is None and found.ending == Edge(LATEST)
    assert found.fail_on_data_loss
    assert not found.reach.read_committed
    assert not found.latest_if_no_match


def test_names_are_known_in_any_case() -> None:
    found = parse_options({name.lower(): text for name, text in REQUIRED.items()})
    assert found.subscription.topics == ("orders",)
    assert options(INCLUDEHEADERS="TRUE").columns[-1] == "headers"


def test_a_table_of_the_catalog_is_refused_with_what_to_do_instead() -> None:
    """What Spark hands over for CREATE TABLE ... USING strandline."""
    table = {f"option.{name}": text for name, text in REQUIRED.items()}
    with pytest.raises(OperatorError, match="CREATE TEMPORARY VIEW instead"):
        parse_options({**table, **REQUIRED, "provider": "strandline", "owner": "root"})


def test_options_travel_to_executors() -> None:
    found = options(startingOffsets='{"orders": {"0": 5}}', includeLeaderEpoch="true")
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"subscibe": "x"}, "option subscibe is not known (did you mean subscribe?); the options "),
        ({"kafka.colour": "x"}, "option kafka.colour is not known"),
        ({"assign": '{"orders": [0]}'}, "exactly one of subscribe, subscribePattern and assign, "),
        ({"kafka.ssl.truststore.location": "x"}, "has no effect without kafka.security.protocol"),
        (
            {"kafka.security.protocol": "SASL_SSL"},
            "sasl.mechanism is '', not one of PLAIN",
        ),
        ({"kafka.security.protocol": "TLS"}, "security.protocol is 'TLS', not one of PLAINTEXT"),
        ({"kafka.ssl.key.password": "x"}, "kafka.ssl.key.password: PEM files have no password"),
        ({"kafka.ssl.engine.factory.class": "x"}, "kafka.ssl.engine.factory.class is not known"),
        ({"clientConfig": "/no/such"}, "/no/such: cannot read: No such file"),
        (
            {"clientConfig": "f", "kafka.security.protocol": "SSL"},
            "kafka.security.protocol is a matter of the file f: put it there",
        ),
        ({"kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset: give startingOffsets"),
        ({"kafka.bootstrap.servers": "nowhere"}, None),
        ({"kafka.bootstrap.servers": "a:b"}, "kafka.bootstrap.servers must look like host:port"),
        ({"startingOffsets": "soon"}, "startingOffsets: 'soon' is not JSON: expected earliest"),
        ({"startingOffsets": '{"orders": {"x": 1}}'}, "topic orders: 'x' is not a partition"),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "orders-0: -3 is not a whole number of at"),
        ({"startingOffsets": '{"orders": {"0": true}}'}, "orders-0: true is not a whole number"),
        ({"startingOffsets": "{}"}, "names no partition"),
        ({"endingOffsets": "earliest"}, "endingOffsets: nothing is before earliest"),
        ({"startingOffsetsByTimestamp": '{"orders": {"0": -1}}'}, "-1 is not a whole number"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp: 'yesterday' is not a whole num"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss: 'no' is not offered: true or false"),
        ({"minPartitions": "0"}, "minPartitions: '0' is not a whole number of at least 1"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay: 'soon' is no duration"),
        ({"columns": "key,colour"}, "columns: 'colour' is no column: the columns are key, value"),
        ({"columns": "key", "includeValue": "true"}, "includeValue contradicts columns key"),
        ({"kafka.isolation.level": "best"}, "read_uncommitted or read_committed"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "9 is above maxOffsetsPerTr"),
        ({"readFrom": "disk"}, "readFrom: 'disk' is not offered: broker or bucket or auto"),
        ({"readFrom": "bucket"}, "readFrom bucket: give buckets, as in [tiered] buckets"),
        ({"buckets": "/mnt/east"}, "buckets must look like region=url, as in east=s3://"),
        ({"buckets": "east=s3://user:word@b"}, "give credentials in"),
        ({"buckets": "east=file:///a,east=file:///b"}, "buckets gives the region east twice"),
        ({"path": "/x"}, "load() takes no path: name topics by subscribe"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(
    given: dict[str, str], message: str | None
) -> None:
    if message is None:
        parse_options({**REQUIRED, **given})
        return
    with pytest.raises(OperatorError) as refused:
        parse_options({**REQUIRED, **given})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_unknown_option_s_refusal_names_the_known_ones() -> None:
    with pytest.raises(OperatorError) as refused:
        options(colour="red")
    used = [one.name for one in OPTIONS if one.use not in (Use.NO_EFFECT, Use.REFUSED)]
    assert all(name in str(refused.value) for name in used)


def test_each_option_of_the_connector_is_taken_or_refused_by_name() -> None:
    for option in OPTIONS:
        if option.use is Use.NO_EFFECT:
            assert parse_options({**REQUIRED, option.name: "1"}) == options(**{option.name: "1"}), (
                option.name
            )
        elif option.use is Use.REFUSED:
            with pytest.raises(OperatorError, match=option.name.replace(".", r"\.")):
                parse_options({**REQUIRED, option.name: "1"})


def test_a_time_counts_before_times_and_these_before_offsets() -> None:
    times = '{"orders": {"0": 7}}'
    given = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": times}
    found = parse_options({**REQUIRED, **given})
    assert found.starting == Times("startingOffsetsByTimestamp", {("orders", 0): 7})
    found = parse_options({**REQUIRED, **given, "startingTimestamp": "9"})
    assert found.starting == Time("startingTimestamp", 9)


def test_offsets_are_the_connector_s_json() -> None:
    found = options(startingOffsets='{"orders": {"0": 23, "1": -2}, "returns": {"0": -1}}')
    assert found.starting == Offsets(
        "startingOffsets", {("orders", 0): 23, ("orders", 1): EARLIEST, ("returns", 0): LATEST}
    )


def test_a_batch_does_not_begin_at_the_end_and_a_stream_has_none() -> None:
    for late in ("latest", '{"orders": {"0": -1}}'):
        with pytest.raises(OperatorError, match="a batch cannot begin at latest"):
            options(startingOffsets=late).check_batch()
    with pytest.raises(OperatorError, match="a batch cannot end at earliest"):
        options(endingOffsets='{"orders": {"0": -2}}').check_batch()
    for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
        text = "5" if name == "endingTimestamp" else '{"orders": {"0": 5}}'
        with pytest.raises(OperatorError, match=f"{name}: a stream has no end"):
            options(**{name: text}).check_stream()
    options(maxOffsetsPerTrigger="5").check_batch()
    options(startingOffsets="latest").check_stream()


def test_columns_that_are_not_asked_for_are_left_out() -> None:
    assert "value" not in options(includeValue="false").columns
    assert options(columns="offset, TIMESTAMPTYPE").columns == ("offset", "timestampType")
    schema = schema_of(("value", "offset"))
    assert columns_of(schema) == ("value", "offset")


def test_a_schema_of_other_types_is_refused() -> None:
    schema = schema_of(("value", "offset"))
    schema["offset"].dataType = schema["value"].dataType
    with pytest.raises(OperatorError, match="column offset is bigint, not binary: cast it after"):
        columns_of(schema)
    schema["offset"].name = "colour"
    with pytest.raises(OperatorError, match="column colour is not known: the columns are key"):
        columns_of(schema)


def test_durations_are_spark_s() -> None:
    found = {text: options(maxTriggerDelay=text).trigger_delay_max_ms for text in ("15m", "30s")}
    assert found == {"15m": 900_000, "30s": 30_000}
    assert options(maxTriggerDelay="250").trigger_delay_max_ms == 250


def test_assigned_partitions_are_read_as_json() -> None:
    given = {"kafka.bootstrap.servers": "a:1", "assign": json.dumps({"orders": [2, 0, 2]})}
    assert parse_options(given).subscription.assigned == {"orders": (0, 2)}
    for wrong in ("orders", "[]", '{"orders": []}', '{"orders": ["0"]}', '{"orders": [true]}'):
        with pytest.raises(OperatorError, match="assign: expected JSON like "):
            parse_options({**given, "assign": wrong})


def test_the_docs_name_every_option() -> None:
    pages = Path(__file__).resolve().parents[3] / "docs" / "pipelines"
    text = (pages / "from-the-kafka-connector.md").read_text()
    missing = [one.name for one in OPTIONS if f"`{one.name}`" not in text]
    assert missing == []


def test_buckets_are_read_where_the_query_names_them_and_secrets_are_no_options() -> None:
    assert options().reach.buckets is None
    assert options(readFrom="broker", buckets="east=file:///e").reach.buckets is None
    given = {"buckets": "east=file:///e, west=s3://w?region=eu-1", "bucketCredentialsFile": "/c"}
    found = options(**given).reach.buckets
    assert found is not None and found.read_from == "auto"
    assert found.nearest("west") == ("west", "east")
    assert found.nearest("") == ("east", "west")
    assert options(**found.words).reach.buckets == found
    with pytest.raises(OperatorError) as refused:
        options(buckets="east=s3://user:secret@b")
    assert "secret" not in str(refused.value)


def test_how_brokers_are_reached_is_a_file_or_options_and_no_text_has_the_password(
    tmp_path: Path,
) -> None:
    login = 'org.example.ScramLoginModule required username="mia" password="pa55-of-mia";'
    words = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": login,
    }
    by_options = options(**{f"kafka.{name}": text for name, text in words.items()}).reach
    assert by_options.access == Access.of(words)
    file = tmp_path / "client.properties"
    lines = [f"{name}={text}" for name, text in words.items()]
    file.write_text("\n".join(["bootstrap.servers=of-the-file:1", *lines]))
    by_file = parse_options({"clientConfig": str(file), "subscribe": "orders"}).reach
    assert by_file.bootstrap == (Address("of-the-file", 1),)
    for reach in (by_options, by_file):
        assert AccessTransport(reach.access).login == Login("SCRAM-SHA-512", "mia", "pa55-of-mia")
        assert "pa55" not in repr(reach)
    assert b"pa55" not in pickle.dumps(by_file)
    written = parse_write_options({"clientConfig": str(file)})
    assert written.access == by_file.access and written.bootstrap == by_file.bootstrap
    assert options(**{"kafka.security.protocol": "PLAINTEXT"}).reach.access is None
