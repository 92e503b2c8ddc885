"""What a bucket says of itself: numbered, immutable exports of a partition's tier.

Map:    names.py     where exports, their pages and the heads are
        export.py    what one export says
        encoding.py  objects of exports as bytes, checked and versioned
        layout.py    which entries of an export are in which page
        writing.py   writes an export into a bucket
        reading.py   reads one, or the newest that is whole
        heads.py     hints: the newest exports of a broker's partitions
        exporter.py  exports one partition into one bucket
        history.py   what a bucket has of a partition whose logs are lost
        old.py       which exports and pages may be removed
Source: decisions 0057 and 0061."""
