"""Plots and reports of the pipelines: PNG files and self-contained HTML pages.

Why:    each job ends in a figure or a page that a reader opens without a server; they look alike.
Map:    style.py (colours, sizes, a figure as PNG), plots.py (estimates with intervals, cost against
        benefit), traffic_plots.py (lag over time, records by region and hour), page.py (sections of
        text, tables and figures become one HTML file; its template is in templates/)."""
