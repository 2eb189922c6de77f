"""Columns of a config, texts that they read, and the answers that a curator would give about them."""

import json
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import ExactTotal, Measurement, OwnAnswer
from dpsynth.config.compiled import CompiledSpec, compiled
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.statistics.single_columns import DataWarning, warnings_of
from tests.specs import spec_of

Declared = Mapping[str, object]


@cache
def _compiled(columns: str, privacy: str) -> tuple[CompiledSpec, Mapping[str, float], str]:
    spec = spec_of(json.loads(columns), privacy=json.loads(privacy))
    plan = inputs_of(spec).plan
    (step,) = (step for step in plan.steps if step.step == "one_way")
    scales = {name: step.scale_of.get(name, step.scale) for name in ("(total)", *spec.columns)}
    return compiled(spec), scales, plan.noise


class Asked:
    """Single columns as a release with a config would ask for them."""

    def __init__(self, columns: Mapping[str, Declared], **privacy: object) -> None:
        """By a config's columns and its section privacy."""
        asked = {"epsilon": 1, "delta": 1e-6, **privacy}
        asked = {key: value for key, value in asked.items() if value is not None}
        self.spec, self.scales, self.noise = _compiled(json.dumps(columns), json.dumps(asked))
        self.public = asked.get("neighbours") == "replace_one"

    @property
    def columns(self) -> tuple[Column, ...]:
        """As they are compiled."""
        return self.spec.columns

    def counts(self, texts: Mapping[str, Sequence[str]]) -> dict[str, np.ndarray]:
        """Exact counts of a table."""
        return {
            c.name: np.bincount(c.encode(pa.array(texts[c.name], pa.string())), minlength=c.size)
            for c in self.columns
        }

    def answers(self, counts: Mapping[str, np.ndarray], rng: np.random.Generator) -> list[OwnAnswer]:
        """What a curator would answer, with numpy's noise."""
        total = np.array(next(iter(counts.values())).sum() if counts else 0)
        found = [self._answer((name,), exact, rng) for name, exact in counts.items()]
        return [ExactTotal.of(total) if self.public else self._answer((), total, rng), *found]

    def _answer(self, clique: Clique, exact: np.ndarray, rng: np.random.Generator) -> Measurement:
        scale = self.scales[clique[0] if clique else "(total)"]
        drawn = (rng.normal if self.noise == "gaussian" else rng.laplace)(scale=scale, size=exact.shape)
        return Measurement(clique, exact + np.rint(drawn).astype(int), self.noise, scale)

    def warnings(
        self, counts: Mapping[str, np.ndarray], rng: np.random.Generator, **more: object
    ) -> tuple[DataWarning, ...]:
        """The warnings of one draw."""
        return warnings_of(self.columns, self.answers(counts, rng), **more)  # type: ignore[arg-type]
