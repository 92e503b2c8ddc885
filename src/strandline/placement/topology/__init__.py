"""The places of brokers, as the solver needs them. Pure.

Map:    labels.py (labels from several sources, checked and merged), ordinal.py (an upgrade domain
        by a formula over the number in a host's name), universe.py (candidates as bits, domains as
        masks over them), round_trips.py (measured ways between regions),
        described.py (a cluster that need not exist), naming.py (brokers in a sentence).
Source: design section 7; decision 0008."""
