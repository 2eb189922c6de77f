"""The tables' wing: a tree of linked tables, released as one table with a row for each row at its root.

Invariant: a row of the wide table follows from one root row and the rows that belong to it, and from nothing
else. So the wide table is asked and protected as any table is whose rows are units.
"""

from dpsynth.wing import Wing

_HERE = "dpsynth.wings.tables"

WING = Wing(
    title="Linked tables",
    points={
        "tables": f"{_HERE}.keys:LinkedTables",
        "wide configuration": f"{_HERE}.widened:widened",
        "wide table": f"{_HERE}.wide_rows:wide_table",
        "written tables": f"{_HERE}.made_up:written",
        "fullest row": f"{_HERE}.made_up:fullest",
        "check of links": f"{_HERE}.wide_rows:checked_links",
        "tables of a bundle": f"{_HERE}.database:database_of",
        "questions of tables": f"{_HERE}.questions:answered",
        "joined tables": f"{_HERE}.recipients:joined",
        "sampled tables": f"{_HERE}.recipients:sampled_tables",
        "opened tables": f"{_HERE}.database:opened_tables",
        "checked tables": f"{_HERE}.database:checked_tables",
    },
)
