"""Tables of events become labelled sparse tensors; the group-by runs in an embedded DuckDB.

`sources` opens the table, `wishes` reads what the user asked for; `periods`, `bins` and `labelling`
turn columns into keys, `slots` numbers their rows, `measure` says what a cell holds; `counting`
runs the query and `account` says what was left out.
"""

from smartcpd._data.tables.build import from_table

__all__ = ["from_table"]
