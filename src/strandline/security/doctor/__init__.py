"""`strandline doctor security`: what of a broker's file or of a cluster is open.

Map:    finding.py      a finding and its level
        file_facts.py   what the disk says of the files that a broker's file names
        broker_file.py  findings of a broker's file
        described.py    a broker's file as the broker describes it
        cluster.py      findings of a running cluster: rules, users, configuration, strangers
How:    facts go in, findings come out. Only file_facts.py touches the disk.
Source: docs/operating/security.md, "What is open"; decision 0069."""
