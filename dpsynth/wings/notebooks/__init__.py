"""The wing of notebooks: pictures of a bundle, and an estimator of scikit-learn."""

from dpsynth.wing import Wing

_HERE = "dpsynth.wings.notebooks"

WING = Wing(
    title="In a notebook",
    functions={"Synthesizer": f"{_HERE}.in_python:Synthesizer"},
    points={"picture": f"{_HERE}.pictures:picture_of"},
)
