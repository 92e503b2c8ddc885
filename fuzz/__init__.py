"""Random and damaged input for everything that reads bytes of strangers: `make fuzz SECONDS=60`.

Why:    a broker reads whatever anybody on its network sends. It refuses what is wrong with the
        right error, keeps its memory bounded, and serves the others.
Map:    run.py       the command: rounds over all targets until the time is up
        samples.py   well-formed input: messages drawn from the tables, record batches, payloads
        mutations.py damage: bits, lengths, cuts, splices
        targets.py   what reads the input in this process, and what has to hold afterwards
        access_targets.py the same for mechanisms of SASL, tokens and certificates
        broker.py    a real broker that gets the frames over its port; its memory is watched
        hostile/     a broker with TLS, logins and rules, attacked over its ports
        corpus/      inputs that failed once, `TARGET-NAME.bin`; tests/fuzz reads each
"""
