"""The local model: the contract with respondents, their reports, and what follows from many of them.

Invariant: a contract is public, and so is a report once it is written. A record is seen by
``dpsynth.wings.local.reporting`` alone, at the respondent's side, and nothing of it but a randomised report
stays.
"""

from dpsynth.wing import Wing

_HERE = "dpsynth.wings.local"

WING = Wing(
    title="Without a curator: trust: local",
    commands={"collect": f"{_HERE}.commands:collect", "aggregate": f"{_HERE}.commands:aggregate"},
    functions={"collect": f"{_HERE}.in_python:collect", "aggregate": f"{_HERE}.in_python:aggregate"},
    points={
        "local": f"{_HERE}.keys:Local",
        "plan without a curator": f"{_HERE}.forecast:print_plan",
        "answers without a curator": f"{_HERE}.estimates:stated_answers",
    },
)
