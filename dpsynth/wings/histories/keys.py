"""The key ``privacy.unit.history``: what has to be declared for it, and what it isn't had together with."""

from __future__ import annotations

from collections.abc import Mapping

from dpsynth.columns.column import Column
from dpsynth.columns.section import refused
from dpsynth.config.grammar import Spec, refuse_unknown


def check_history(spec: Spec, columns: Mapping[str, Column]) -> None:
    """Refuse settings with which rows can't follow each other, or for which nobody has shown it."""
    privacy, history = spec.privacy, spec.privacy.history
    assert history is not None
    here, person, by = ("privacy", "unit", "history"), privacy.protected.person, history.order_by
    refuse_unknown(by, columns, *here, "order_by")
    if not columns[by].codec.ordered or columns[by].search is not None or columns[by].part_of:
        raise refused(f"names '{by}', whose values have no declared order", *here, "order_by")
    met = {by: "order_by"}
    for key in ("constant", "rising"):
        for i, name in enumerate(getattr(history, key)):
            refuse_unknown(name, columns, *here, key, i)
            if name in met:
                raise refused(f"names '{name}', which {met[name]} has too; leave it in one", *here, key, i)
            met[name] = key
            if key == "rising" and not columns[name].codec.ordered:
                raise refused(f"names '{name}', whose values have no order", *here, key, i)
    if getattr(spec.columns.get(str(person)), "surrogates", False) is False:
        words = (
            f"needs numbers for the new persons: declare {person} under columns, as {{type: identifier, "
            "surrogates: true}"
        )
        raise refused(words, *here)
    if spec.structure.method != "auto" or len(columns) == 1:
        raise refused("needs structure.method: auto, and two columns at least", *here)
    if privacy.cutoff == 0 and not privacy.max_rows_private:
        words = "needs the numbers of persons by their rows: privacy.split.cutoff must be above 0"
        raise refused(words if privacy.sample_rate is None else "can't be had of a sample", *here)
    others = {
        "audiences": spec.audiences,
        "public_table": spec.public_table,
        "public_marginals": spec.public_marginals,
        "reuse": spec.reuse.same_period or spec.reuse.earlier_periods,
        "engine": spec.engine.by_workers,
    }
    for key, given in others.items():
        if given:
            raise refused(f"is not supported with {key}: leave one of them out", *here)
