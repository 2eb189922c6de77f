"""What each idea of the strategy `auto` brings: releases with one of them switched off at a time.

    python benchmarks/ablation.py --scorer FOLDER [--tables adult-coded nltcs titanic] [--gzipped fire]
        [--extra FOLDER ...] [--relations flights near ...] [--epsilon 1] [--runs 10]
        [--ideas merging blocks ...] [--missing]

Folders are as in coded_tables.py; tables after --relations and their scores are as in relations.py. Releases
run in this process, by `dpsynth.release`; an idea is switched off by a key of the config, or by replacing a
constant or a function of its module meanwhile. --missing doesn't declare that no cell is missing. The cases
take turns, run by run. Prints each run; then, for each table and epsilon, means with their standard errors,
and by how many percent tvd3 changes without the idea; its own standard error beside it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import hypot, inf, nan, sqrt
from pathlib import Path
from statistics import mean, stdev
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
import yaml
from coded_files import errors
from coded_tables import DELTA, config_text, markdown, options, tables_of
from numpy.typing import NDArray
from relations import posed
from relations import released as released_raw

import dpsynth
from dpsynth.bundle import row_source
from dpsynth.columns import joint_density
from dpsynth.model import RakedEstimates, denoising, rare_values, refined_sample, refinement
from dpsynth.strategy import allocation, auto, candidates, second_round
from dpsynth.strategy.candidates import Forest, Positions


@dataclass(frozen=True)
class Idea:
    """One idea, and how to do without.

    Attributes:
        without: what is done in its place.
        replaced: (module or other holder, name, value) to put in place of what stands there.
        privacy: further keys of the config's section.
        structure: likewise.
    """

    without: str
    replaced: tuple[tuple[Any, str, Any], ...] = ()
    privacy: str = ""
    structure: str = ""


class AllTogether(Forest):
    """Columns of which no two are ever in different parts, so that no pair comes first for joining two."""

    def disconnected(self, first: Positions | int, second: Positions | int) -> NDArray[np.bool_]:
        """Never."""
        del second
        return np.zeros(np.shape(first), dtype=bool)


def joining_nothing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ``auto`` that doesn't see which pairs join two parts."""

    def blind(*arguments: Any) -> Any:
        with patch.object(auto, "Forest", AllTogether):
            return function(*arguments)

    return blind


def evenly(*arguments: Any, best: Callable[..., allocation.Split] = allocation.shared) -> allocation.Split:
    """Columns get what is best, cliques the rest in equal parts."""
    shares = best(*arguments)
    cliques = shares.cliques
    return allocation.Split(
        shares.columns, np.full(len(cliques), cliques.sum() / max(len(cliques), 1)), shares.price
    )


def merged_ignored(
    trade: allocation.Trade, *arguments: Any, best: Callable[..., allocation.Split] = allocation.shared
) -> allocation.Split:
    """Cliques are thought to tell of values that count in groups there."""
    return best(replace(trade, merged=0.0), *arguments)


def missing_apart(of_values: NDArray[np.intp], counts: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    """Places of missing cells stay on their own."""
    del least
    return np.concatenate(
        [of_values, int(of_values.max()) + 1 + np.arange(counts.size - of_values.size, dtype=np.intp)]
    )


def as_drawn(model: object, wanted: object, codes: Any, *_: object) -> dict[str, Any]:
    """Rows as they are drawn from the model."""
    del model, wanted
    return dict(codes)


ALL = dict.fromkeys(auto.PICKS, 1e6)

IDEAS = {
    "accounting": Idea("zCDP", privacy=", accountant: zcdp"),
    "first share": Idea("the least share for single columns", ((auto, "MANY_PLACES", Fraction(0)),)),
    "merging": Idea("rare values stay on their own", structure=", merge_rare: 0"),
    "smoothing": Idea("noisy counts as they come", ((denoising.smoothed, "__defaults__", (0.0,)),)),
    "coarse numbers": Idea(
        "values of numbers are as rare as others",
        ((rare_values, "rare_when_ordered", lambda rest, least, rows: least),),
    ),
    "merged values": Idea("cliques tell of merged values", ((auto, "shared", merged_ignored),)),
    "missing places": Idea("unused places stay", ((rare_values, "_with_missing", missing_apart),)),
    "later rounds": Idea("all measured at once", ((auto, "later_distances", lambda sizes, measure: 0),)),
    "pairs beside": Idea("none beside the tree is looked for", ((auto, "would_tell", lambda *_: False),)),
    "triples": Idea("pairs alone beside the tree", ((second_round, "_triples", lambda *_: []),)),
    "small triples": Idea("none of small columns is asked about", ((second_round, "SMALL_OF", 0),)),
    "denoising": Idea(
        "noisy counts of the tree as they come",
        ((denoising, "LEAST_CELLS", inf), (auto, "LEAST_DENOISED", inf)),
    ),
    "slabs": Idea("one slab", ((denoising, "_APART", (1.0,)), (denoising, "_SHARES", (0.5, 0.5)))),
    "trends": Idea(
        "no trends", ((denoising, "with_trends", lambda noisy, variance, estimate, slab: estimate),)
    ),
    "medians": Idea(
        "posterior means as targets", ((denoising.Denoised, "median", property(lambda found: found.mean)),)
    ),
    "target weights": Idea(
        "targets of several columns weigh alike", ((refined_sample, "WEIGHT_POWER", 0.0),)
    ),
    "raking": Idea(
        "triples' distances from the tree's model",
        ((second_round, "_estimates", lambda problem, model, _: RakedEstimates(model, {})),),
    ),
    "strongest": Idea(
        "larger triples in table order",
        ((second_round, "_strongest", lambda _, triples: list(triples)[: second_round.MOST_TRIPLES]),),
    ),
    "cells around": Idea(
        "cells are likely empty whatever is around them",
        ((denoising, "_around", lambda empty, telling, share, shape: np.zeros_like(empty)),),
    ),
    "refinement": Idea("rows as they are drawn", ((row_source, "refined_rows", as_drawn),)),
    "below zero": Idea("empty cells are targets of 0", ((refined_sample, "BELOW", 0.0),)),
    "yields": Idea("every column tried in every batch", ((refinement, "_ANYWAY", 1),)),
    "inside two bins": Idea("values drawn independently", ((joint_density, "LEAST_CORRELATION", 2.0),)),
    "choosing": Idea("all distances asked for, no pair chosen", ((auto, "PICKS", ALL),)),
    "small pairs": Idea("small pairs chosen like others", ((auto, "SMALL_A_COLUMN", 0),)),
    "guesses": Idea("pairs not chosen taken for independent", ((auto, "UNPICKED", 0.0),)),
    "caution": Idea("noisy distances as they come", ((auto, "CAUTION", 0.0),)),
    "worth": Idea(
        "as many pairs as fit, the farthest first",
        ((allocation.Trade, "gains", lambda trade, weighted, burdens, price: weighted),),
    ),
    "forest": Idea("pairs by gain alone, no forest first", ((auto, "_tree", joining_nothing(auto._tree)),)),
    "joining": Idea("pairs of the forest gain no more than others", ((auto, "JOINING", 1.0),)),
    "bound": Idea("a model as large as allowed, whatever the noise", ((auto, "CELLS_A_SIGNAL", 10**9),)),
    "allocation": Idea("cliques share equally", ((auto, "shared", evenly),)),
    "columns": Idea("single columns count for nothing", ((auto, "COLUMNS_COUNT", 0.0),)),
    "measuring again": Idea("no column measured again", ((auto, "_NOTHING", inf),)),
    "blocks": Idea("pairs only", ((candidates, "MOST_CELLS", 0),)),
    "prior": Idea("no shrinking to independence", ((auto, "PRIOR", 0.0),)),
}


@contextmanager
def switched_off(idea: Idea) -> Iterator[None]:
    """Do without an idea."""
    with ExitStack() as stack:
        for holder, name, value in idea.replaced:
            stack.enter_context(patch.object(holder, name, value))
        yield


def released(table: Path, epsilon: str, idea: Idea, work: Path, *, missing: bool) -> dict[str, float]:
    """Errors and seconds of all processors of one release without an idea."""
    config = work / f"{table.name}.yaml"
    privacy = f"epsilon: {epsilon}, delta: {DELTA}{idea.privacy}"
    method = f"method: auto{idea.structure}"
    # A ledger's filter can't bound every accountant: each accountant has one of its own.
    ledger = work / ("zcdp.db" if idea.privacy else "ledger.db")
    config.write_text(config_text(table, ledger, privacy, method, missing=missing))
    begun = process_time()
    with switched_off(idea):
        release = dpsynth.release(dpsynth.load(config), outputs=work / "out")
    seconds = process_time() - begun
    synthetic = release.folder / "public" / "synthetic.csv"
    pairs, triples = errors(table / "train.csv", synthetic, table / "domain.json", (2, 3))
    return {"tvd2": pairs, "tvd3": triples, "CPU s": seconds}


def posed_release(name: str, epsilon: str, work: Path) -> Callable[[Idea], dict[str, float]]:
    """A function that scores one release of a table of relations.py without an idea."""
    config, score = posed(name, work, float(epsilon))

    def scored(idea: Idea) -> dict[str, float]:
        structure = yaml.safe_load(f"{{method: auto{idea.structure}}}")
        further = yaml.safe_load(f"{{{idea.privacy.removeprefix(', ')}}}")
        with switched_off(idea):
            synthetic, seconds = released_raw(name, config, structure, further, work)
        found = {key: value for key, value in score(synthetic).items() if not key.endswith("real")}
        return found | {"CPU s": seconds}

    return scored


def _error(values: Sequence[float]) -> float:
    """The standard error of a mean."""
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else nan


def _row(
    words: Sequence[str], runs: Sequence[dict[str, float]], whole: Sequence[dict[str, float]]
) -> list[str]:
    """One case's line; the change of tvd3, if it is scored, is against the strategy as it is."""
    found = {key: [run[key] for run in runs] for key in runs[0]}
    seconds = f"{mean(found.pop('CPU s')):.2f}"
    shown = [f"{mean(values):.4f} ± {_error(values):.4f}".replace(" ± nan", "") for values in found.values()]
    change = ""
    if "tvd3" in found and runs is not whole:
        before = [run["tvd3"] for run in whole]
        ratio = mean(found["tvd3"]) / mean(before)
        error = ratio * hypot(_error(found["tvd3"]) / mean(found["tvd3"]), _error(before) / mean(before))
        change = f"{100 * (ratio - 1):+.1f} ± {100 * error:.1f} %"
    return [*words, *shown, change, seconds]


def main() -> None:
    """Print one table in Markdown for each table and epsilon."""
    parser = options(__doc__)
    parser.add_argument("--relations", nargs="+", default=[], metavar="TABLE")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--missing", action="store_true", help="don't declare that no cell is missing")
    parser.add_argument("--ideas", nargs="+", choices=IDEAS, default=list(IDEAS), metavar="IDEA")
    arguments = parser.parse_args()
    cases = {"nothing": Idea("")} | {name: IDEAS[name] for name in arguments.ideas}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for epsilon in arguments.epsilon:
            tables: dict[str, Callable[[Idea], dict[str, float]]] = {
                t.name: partial(released, t, epsilon, work=work, missing=arguments.missing)
                for t in tables_of(arguments, work)
            }
            tables |= {name: posed_release(name, epsilon, work) for name in arguments.relations}
            for table, scored in tables.items():
                runs: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
                for _ in range(arguments.runs):
                    for name, idea in cases.items():
                        runs[name].append(scored(idea))
                        told = ", ".join(f"{key} {value:.4f}" for key, value in runs[name][-1].items())
                        print(f"{table}, epsilon {epsilon}, without {name}: {told}", flush=True)
                scores = [key for key in runs["nothing"][0] if key != "CPU s"]
                head = ["without", "instead", *scores, "change of tvd3", "CPU s"]
                lines = [
                    _row([name, idea.without], runs[name], runs["nothing"]) for name, idea in cases.items()
                ]
                print(f"{table}, epsilon {epsilon}, {arguments.runs} runs each\n")
                print(markdown(head, lines, words=2) + "\n", flush=True)


if __name__ == "__main__":
    main()
