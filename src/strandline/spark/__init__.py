"""Spark's data source `strandline`: topics as data frames and streams, for users and for jobs.

Map:    source.py   the data source that Spark calls; `register`
        columns.py  its columns
        access.py   how a query proves itself to brokers
        decoding/   record batches -> columns
        writing/    the sink: rows -> records
        reading/    options, offsets, splits, and the readers of batches and streams
Why:    Spark's Kafka connector hands over one record at a time. This source hands over columns of
        many records, and reads from the nearest replica of any Kafka-compatible cluster.
Source: decisions/0049."""

from strandline.spark.source import register

__all__ = ["register"]
