"""Dead letters into the table they belong to, once a new schema fits them.

Why:    a wrong schema should cost a second run, not the records.
Map:    options.py  what the table says about itself, for decoding as its lake job does
        letters.py  the table of dead letters and its marks
        job.py      mark -> add -> remove, each one commit
Source: docs/pipelines/upkeep.md, decisions/0055."""
