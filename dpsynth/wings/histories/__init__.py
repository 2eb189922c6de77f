"""The histories' wing: rows of a person that follow each other, drawn one after another.

Invariant: post-processing. What is asked about rows and those before them is asked by the core, at its door.
"""

from dpsynth.wing import Wing

_HERE = "dpsynth.wings.histories.chains"

WING = Wing(
    title="Rows that follow each other",
    points={"fit": f"{_HERE}:chain_of", "chains": f"{_HERE}:load_chain"},
)
