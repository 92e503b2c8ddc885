"""The page for people: what is down, who is there, who votes, who observes, who lags.

Why:    whoever is woken at night opens a page, in whatever browser there is.
Map:    pages.py (what is asked for, and what is answered), rows.py (what stands in the tables),
        rendering.py (HTML of it, in slices; what the browser may do with it), templates/ (the
        pages), style.css.
Source: decision 0036."""
