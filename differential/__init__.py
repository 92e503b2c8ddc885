"""One script of requests for Apache Kafka and for Strandline; their answers compared by field.

Why:    clients are written against Kafka's answers, documented or not. A difference that nobody
        decided is a bug.
Map:    run.py          the command (`make differential`): starts both, asks both, compares
        peer.py         a client that sends one request at a time and notes each answer
        answers.py      an answer as {path: value}, without what differs from run to run
        comparison.py   two sets of answers; the differences that have a reason
        cases/          the requests, by subject
Source: docs/reference/differences.md has each known difference with its reason."""
