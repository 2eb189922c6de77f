"""The cluster's wing: a private table counted by many workers, each with a part of the rows, through Dask.

Invariant: workers hold private rows as the curator does. Exact counts leave them for the door alone.
"""

from dpsynth.wing import Wing

WING = Wing(
    title="Many workers",
    points={"workers": "dpsynth.wings.cluster.counting:DASK", "engine": "dpsynth.wings.cluster.keys:Engine"},
)
