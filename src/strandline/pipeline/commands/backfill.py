"""`strandline pipeline backfill`: the history that buckets hold into a lake table.

How:    a lake job that reads nothing but buckets, in large commits, up to the last record in them.
        Its progress is in the table, so that `lake` goes on at the next offset.
Source: decisions 0050 and 0065."""

import typer

from strandline.base.errors import OperatorError
from strandline.pipeline.commands.lake import lake
from strandline.pipeline.commands.lake_options import (
    BatchRecordsOption,
    DeadLettersOption,
    EachOption,
    FormatOption,
    KeepRawOption,
    KeyOption,
    LocationOption,
    MessageOption,
    ModeOption,
    NameOption,
    OnGapOption,
    PartitionByOption,
    RackOption,
    RegistryOption,
    SchemaOption,
    SubjectOption,
    TopicsArgument,
)
from strandline.pipeline.commands.options import (
    BootstrapOption,
    BucketCredentialsOption,
    BucketsOption,
    ConfOption,
    JarsOption,
    JsonOption,
    MasterOption,
    TableArgument,
)
from strandline.pipeline.runtime.session import LOCAL_MASTER

BATCH_RECORDS_DEFAULT = 10_000_000
"""In one commit. Workers hold a row group at a time, whatever a commit has."""


def backfill(
    context: typer.Context,
    topics: TopicsArgument = None,
    table: TableArgument = "",
    *,
    buckets: BucketsOption = None,
    bucket_credentials: BucketCredentialsOption = "",
    bootstrap: BootstrapOption = "",
    each: EachOption = False,
    location: LocationOption = None,
    schema: SchemaOption = None,
    format_: FormatOption = None,
    registry: RegistryOption = None,
    subject: SubjectOption = None,
    message: MessageOption = None,
    mode: ModeOption = "strict",
    keep_raw: KeepRawOption = False,
    key: KeyOption = "raw",
    partition_by: PartitionByOption = None,
    dead_letters: DeadLettersOption = None,
    on_gap: OnGapOption = "stop",
    name: NameOption = "",
    batch_records: BatchRecordsOption = BATCH_RECORDS_DEFAULT,
    rack: RackOption = None,
    master: MasterOption = LOCAL_MASTER,
    jars: JarsOption = None,
    conf: ConfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fill a table with what buckets hold of topics, past the brokers; `lake` goes on from there,
    with the same options."""
    given = dict(locals())
    if not buckets:
        raise OperatorError("give --buckets, as in [tiered] buckets of a broker's file")
    lake(**given, read_from="bucket")
