"""Reads topics into Spark: what a query asks for, what there is, which task reads which part.

Map:    option_table.py   every option, with its use and default
        option_values.py  numbers, words and durations of options
        bucket_options.py the options about buckets
        options.py        a query's options, checked
        bounds.py         where a read begins or ends, as options say it
        cluster.py        partitions and offsets, as the cluster says them
        ranges.py         bounds + cluster -> ranges of offsets
        filters.py        filters of a query, which narrow the ranges
        pushdown.py       takes filters whether or not a session pushes them
        data_loss.py      failOnDataLoss
        splits.py         ranges -> tasks
        batch_reader.py   plans and reads a batch
        stream_reader.py  plans and reads a stream's micro-batches
        stream_offsets.py what a stream's checkpoint holds
        admission.py      how much goes into a micro-batch
        tiers.py          which splits buckets have, and where a read of buckets alone ends
        split_reading.py  one task: fetched batches -> Arrow batches
        fetching.py       one task's requests, retries, and choice of the replica
        bucket_fetching.py one task's ranges of objects
Source: decisions/0049."""
