"""The methods' wing: strategies of the literature, beside the default one.

Invariant: a strategy sees the door and public facts, so it can't break a guarantee.
"""

from dpsynth.wing import Wing

_NAMES = ("mst", "privbayes", "aim", "one_shot")

WING = Wing(
    title="Methods of the literature",
    points={f"method {name}": f"dpsynth.wings.methods.{name}:STRATEGY" for name in _NAMES},
)
