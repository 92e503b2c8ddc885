"""The console: pages with outages, brokers, voters, observers and lag.

Why:    an operator on call opens a page in any browser.
Map:    pages.py (requests and responses), rows.py (rows of the tables), rendering.py (HTML, in
        slices, and the content security policy), templates/ (the pages), style.css.
Source: decision 0036."""
