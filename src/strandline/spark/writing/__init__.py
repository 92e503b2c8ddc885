"""Writes rows to topics: batches and streams, at least once.

Map:    options.py       the options of a query
        option_table.py  every option, with what it does
        columns.py       which columns a query may have, checked before it runs
        arrow_columns.py columns of Arrow -> arrays
        row_encode.py    arrays -> encoded records, by the compiled `records/_rows.c` or in Python
        topic_writer.py  rows of one topic -> batches of its partitions
        writer.py        the writers that Spark calls
Source: Spark's guide to its Kafka connector; docs/decisions/0054-spark-sink.md."""
