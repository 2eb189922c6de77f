"""The owner's wing: before and after a release, with the private table in hand. Nothing of it is released.

It writes first configurations, guesses what a column holds, checks what a release would read, and compares a
release with its table. ``dpsynth.wings.owner.assess`` reads private rows; ``dpsynth.wings.owner.starter``
doesn't.
"""

from dpsynth.wing import Wing

_HERE = "dpsynth.wings.owner"

WING = Wing(
    title="For the owner of the table",
    commands={
        "init": f"{_HERE}.commands:init",
        "example": f"{_HERE}.commands:example",
        "check": f"{_HERE}.commands:check",
        "evaluate": f"{_HERE}.commands:evaluate",
    },
    functions={
        "describe": f"{_HERE}.in_python:describe",
        "check": f"{_HERE}.in_python:check",
        "evaluate": f"{_HERE}.in_python:evaluate",
    },
    points={
        "never checked": f"{_HERE}.checked_mark:never_checked",
        "page of the ledger": f"{_HERE}.ledger_page:page_of_ledger",
    },
)
