"""Quotas: how much of a broker's bytes and time a user, or a client id, may use.

Map:    keys.py        the quotas that there are: a table
        entities.py    users, client ids and addresses, and legal values
        entity_filter.py  which entities a request to describe names
        precedence.py  which of several quotas counts for a client
        token_budget.py  tokens for changes of topics
        windows.py     the rate over the last seconds, and how long to throttle
Source: KIP-13, KIP-55, KIP-124, KIP-219, KIP-546; decision 0070."""
