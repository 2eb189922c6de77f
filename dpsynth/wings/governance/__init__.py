"""The wing of governance: what an office asks of a release before it is handed over, and after."""

from dpsynth.wing import Wing

_HERE = "dpsynth.wings.governance"

WING = Wing(
    title="Who may release, and what a release must be",
    points={
        "accept": f"{_HERE}.acceptance.keys:Accept",
        "criteria": f"{_HERE}.acceptance.judging:judged",
        "criteria beforehand": f"{_HERE}.acceptance.judging:told_beforehand",
    },
)
