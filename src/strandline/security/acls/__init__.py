"""Rules: which principal may do what with which resource (Kafka's ACLs).

Map:    legality.py    what is legal in a rule
        included.py    which permission includes which, and which operations a kind has
        rule_filter.py which rules a request to describe or delete names
        rule_index.py  the rules that concern a resource, without a look at the others
        authoriser.py  the answer: allowed or denied, and by which rule
Source: Kafka 4.3's StandardAuthorizer; KIP-11, KIP-290; decision 0069."""
