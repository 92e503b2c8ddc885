"""Writes rows to topics: batches and streams, at least once.

Map:    options.py       the options of a query
        option_table.py  every option, with what it does
        columns.py       which columns a query may have, checked before it runs
        rows.py          columns of Arrow -> records
        writer.py        the writers that Spark calls
Source: Spark's guide to its Kafka connector; docs/decisions/0054-spark-sink.md."""
