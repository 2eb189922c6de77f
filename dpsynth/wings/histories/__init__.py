"""The histories' wing: rows of a person that follow each other, drawn one after another.

Invariant: what is asked about rows and those before them (``links``) is asked at the door that the core hands
over. All else is post-processing.
"""

from dpsynth.wing import Wing

_HERE = "dpsynth.wings.histories.chains"

WING = Wing(
    title="Rows that follow each other",
    points={
        "check of histories": "dpsynth.wings.histories.keys:check_history",
        "links": "dpsynth.wings.histories.links:ask",
        "fit": f"{_HERE}:chain_of",
        "chains": f"{_HERE}:load_chain",
    },
)
