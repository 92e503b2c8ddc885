"""Turns the record batches of a Fetch response into columns of Arrow.

Map:    decode.py   `decode`: the bytes of one partition to one `RecordBatch`
        columns.py  the columns, their Arrow types, and an accumulator for their rows
        aborted.py  which batches belong to aborted transactions
        errors.py   the error for damaged batches
Source: Kafka's message format v2; the columns of Spark's Kafka connector."""
