"""Topics that are read out of another cluster's bucket.

Map:    hosting.py   which partitions here are copies, and the views of their sources
        serving.py   whether a copy may answer a request now
        copied_replica.py  a replica of a copy, as reads see it
        creating.py  looks into the bucket before such a topic is created
Source: decision 0061."""
