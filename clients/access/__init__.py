"""The second matrix: what each client does where brokers ask for a proof and enforce rules.

Why:    a login that one client does and another does not is found by those who have the other.
How:    three brokers with TLS among themselves and three listeners; each client comes in by a
        password, by a certificate and by a token, always as the user `app`, and does all its work.
        Then it tries what it may not, and goes on while certificates and logins are renewed.
Map:    cluster.py   the brokers, their listeners, certificates, users and rules
        login.py     how a client comes in, as a file of KEY=VALUE that every program reads
        provider.py  an identity provider: keys, and tokens for a client's credentials
        attempts.py  what is refused, and what each client calls the error
        governing.py rules and users, by each client's own calls
        tools.py     Kafka's command line tools with `--command-config`
        course.py    work that goes on while brokers and logins are renewed
        cells.py     the cells: `password`, `certificate`, `token`, `refusals`...
        table.py     the table, for people and for docs/reference/clients.md
Source: decision 0069; docs/operating/security.md."""
