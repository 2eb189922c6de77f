"""The views of a bundle, checked against its synthetic table.

Suppression is checked by linear programming: no count left out can be computed from those that are shown.
k-anonymity and l-diversity are checked by brute force on the file itself, row by row.

Invariant: what a view shows is compared with the synthetic table, cell by cell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.bundle.manifest import MANIFEST, KAnonymous, StatedViews
from dpsynth.bundle.recipient.opened import OpenedBundle, csv_texts, synthetic_codes, synthetic_texts
from dpsynth.wings.proof.disclosure.keys import MOST_CELLS, Rounding
from dpsynth.wings.proof.disclosure.linked_tables import LinkedTables, number_of_cells
from dpsynth.wings.proof.disclosure.suppression import small, too_narrow
from dpsynth.wings.proof.disclosure.views import (
    ROWS,
    Codes,
    cells_shown,
    dropped_columns,
    labels_shown,
    margins_shown,
    shown_counts,
    tables_of,
)

Fault = tuple[str, str]
"""A file and a sentence on what is wrong with it."""
Places = NDArray[np.int64]
Cells = NDArray[np.bool_]


def checked_views(bundle: OpenedBundle) -> tuple[list[str], list[Fault]]:
    """Sentences on what was found to be right, and faults."""
    views = bundle.facts.views
    if views is None:
        return [], []
    try:
        codes = synthetic_codes(bundle)
        proven, faults = _counts(bundle, views, codes)
        anonymous = views.k_anonymous
        if anonymous is not None:
            found = list(_k_anonymous(bundle, anonymous, codes))
            faults += found
            proven += [] if found else [_anonymous_in_words(anonymous)]
    except (KeyError, IndexError, TypeError, ValueError, OSError, pa.ArrowException) as error:
        return [], [(MANIFEST, f"describes views that are damaged or missing ({type(error).__name__}).")]
    return proven, faults


def _anonymous_in_words(view: KAnonymous) -> str:
    diverse = f", and {view.l} values of {', '.join(view.sensitive)}" if view.sensitive else ""
    return (
        f"In {view.file} each combination of {', '.join(view.quasi_identifiers)} is in {view.k} "
        f"rows or more{diverse}. It adds nothing to the guarantee."
    )


def _counts(bundle: OpenedBundle, views: StatedViews, codes: Codes) -> tuple[list[str], list[Fault]]:
    listed = views.counts
    if not listed:
        return [], []
    columns = {column.name: column for column in bundle.layout.columns}
    cliques = [view.columns for view in listed]
    sizes = {name: column.size for name, column in columns.items()}
    if number_of_cells(cliques, sizes) > MOST_CELLS:
        return [], [(MANIFEST, "lists views of more cells than dpsynth writes.")]
    tables = tables_of(cliques, list(columns.values()), codes)
    rounding = None if views.rounding is None else Rounding.model_validate(views.rounding.model_dump())
    shown = shown_counts(tables, columns, rounding, bundle.facts.release_id)
    hidden = np.zeros(len(tables.counts), np.bool_)
    seen = np.zeros(len(tables.counts), np.bool_)
    of_file: dict[str, Places] = {}
    faults: list[Fault] = []
    for view, clique in zip(listed, cliques, strict=True):
        file = view.file
        texts = csv_texts(bundle.folder / file)
        places = np.concatenate([cells_shown(part, clique, tables) for part in margins_shown(clique, tables)])
        labels = labels_shown(margins_shown(clique, tables), clique, columns)
        if {name: text.to_pylist() for name, text in texts.items() if name != ROWS} != labels:
            faults.append((file, "has other labels than its columns have."))
            continue
        counts = texts[ROWS].to_pylist()
        empty = np.array([text == "" for text in counts], np.bool_)
        if [int(text) for text in counts if text] != shown[places[~empty]].tolist():
            faults.append((file, "has other counts than the synthetic table gives."))
        if view.counts_left_out != int(empty.sum()):
            faults.append((MANIFEST, f"counts the cells left out of {file} wrongly."))
        seen[places[~empty]] = True
        hidden[places[empty]] = True
        of_file[file] = places
    below = views.suppress_below
    if not faults:
        faults = [
            (file, words)
            for file, places in of_file.items()
            for words in _at(tables, places, hidden, seen, below)
        ]
    if not faults and below is not None:
        narrow = too_narrow(tables, hidden, below)
        files = [file for file, places in of_file.items() if np.isin(narrow, places).any()]
        faults = [(file, "leaves out a count that can be computed from the margins.") for file in files]
    if faults:
        return [], faults
    if below is None:
        return [f"{len(listed)} views of counts are those of the synthetic table."], []
    return [
        f"{int(hidden.sum())} counts are left out of the views of counts: all from 1 to below {below}, and "
        "others, so that linear programming computes none of them. It adds nothing to the guarantee."
    ], []


def _at(tables: LinkedTables, places: Places, hidden: Cells, seen: Cells, below: int | None) -> Iterator[str]:
    """Faults of what one view shows and leaves out, by the places of its cells."""
    if (hidden & seen)[places].any():
        yield "leaves out counts that another view shows, or shows what another leaves out."
    if below is None:
        if hidden[places].any():
            yield "leaves out counts, and the manifest names no limit."
    elif (small(tables.counts, below) & ~hidden)[places].any():
        yield f"shows a count from 1 to below {below}."


def _k_anonymous(bundle: OpenedBundle, view: KAnonymous, codes: Codes) -> Iterator[Fault]:
    file, texts = view.file, csv_texts(bundle.folder / view.file)
    quasi, sensitive = view.quasi_identifiers, view.sensitive
    rows = len(next(iter(texts.values())))
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, key in enumerate(zip(*(texts[name].to_pylist() for name in quasi), strict=True)):
        groups[key].append(row)
    if any(len(members) < view.k for members in groups.values()):
        yield file, f"has a combination of quasi-identifiers in fewer than {view.k} rows."
    columns = {column.name: column for column in bundle.layout.columns}
    for name in sensitive:
        cells = columns[name].encode(texts[name])
        if any(len(set(cells[members].tolist())) < view.l for members in groups.values()):
            yield file, f"has a group of equal rows with fewer than {view.l} values of {name}."
    left_out = bundle.facts.synthetic_rows - rows
    if (view.rows, view.rows_left_out) != (rows, left_out):
        yield MANIFEST, f"counts the rows of {file} wrongly."
    if rows and left_out > view.suppress_at_most * bundle.facts.synthetic_rows + 1e-9:
        yield file, "leaves out more rows than the manifest allows."
    yield from ((file, words) for words in _rows_wrong(bundle, view, codes, texts))


def _rows_wrong(
    bundle: OpenedBundle, view: KAnonymous, codes: Codes, texts: Mapping[str, pa.StringArray]
) -> Iterator[str]:
    """Differences from the synthetic table, generalised as the manifest says, without groups too small."""
    dropped = dropped_columns(bundle.layout, view.quasi_identifiers)
    whole = {name: text for name, text in synthetic_texts(bundle).items() if name not in dropped}
    for name, level in view.generalised.items():
        whole[name] = pa.array(level.groups, pa.string()).take(pa.array(codes[name]))
    keys = list(zip(*(whole[name].to_pylist() for name in view.quasi_identifiers), strict=True))
    members: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        members[key].append(row)
    good = {
        key
        for key, rows in members.items()
        if len(rows) >= view.k
        and all(len(set(codes[name][rows].tolist())) >= view.l for name in view.sensitive)
    }
    kept = pa.array([key in good for key in keys], pa.bool_())
    if list(texts) != list(whole) or any(texts[name] != whole[name].filter(kept) for name in whole):
        yield "is not the synthetic table, generalised as the manifest says."
