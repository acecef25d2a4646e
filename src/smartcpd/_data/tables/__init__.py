"""Tables of events become labelled sparse tensors; the group-by runs in an embedded DuckDB.

`opening` opens the table, whatever it is: `paths` and `unpacking` find the files, `dialect` and
`texts` the layout of text. `kinds` decides what each column holds, with `numerals`, `calendars` and
`dating`, by what the user says in `reading`. `wishes` reads what the user asked for; `periods`,
`bins` and `labelling` turn columns into keys, `slots` numbers their rows, `measure` says what a
cell holds; `counting` runs the query and `account` says what was left out.
"""

from smartcpd._data.tables.build import from_table

__all__ = ["from_table"]
