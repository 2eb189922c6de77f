"""Fitting of a description to the grammar: values that the grammar refuses become gaps.

Invariant: the grammar accepts a fitted sketch once its gaps are filled. A refused value has become
a gap, with a note of the reason.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import cast

from pydantic import TypeAdapter, ValidationError

from dpsynth.columns.column import Column
from dpsynth.columns.declaration import Declared
from dpsynth.columns.kinds import KINDS, ColumnSpec
from dpsynth.wings.owner.starter.sketch import STUB, Sketch

_GRAMMAR: TypeAdapter[ColumnSpec] = TypeAdapter(ColumnSpec)
_LONGEST_NAME = 200
_PROBLEMS = 12


def first_fit(name: str, *candidates: Declared) -> Sketch:
    """The first of some declarations that the grammar accepts; otherwise the last, with gaps."""
    for declared in candidates[:-1]:
        if _problem(declared) is None:
            return fitted(Sketch(name, declared))
    return fitted(Sketch(name, candidates[-1]))


def fitted(sketch: Sketch) -> Sketch:
    """A sketch in which refused values have become gaps, with notes of the reasons."""
    name = sketch.name
    if not name or not name.isprintable() or len(name) > _LONGEST_NAME:
        return replace(sketch, declared=None).noted(
            f"Left out: a name must have 1 to {_LONGEST_NAME} printable characters."
        )
    if sketch.declared is None:
        return sketch
    declared, notes = dict(sketch.declared), list(sketch.notes)
    for _ in range(_PROBLEMS):
        problem = _problem(declared)
        if problem is None:
            break
        key, words = problem
        if key is None or declared.get(key) is None:
            declared = dict(STUB)
            notes.append(f"Its description can't be used: {words}.")
        else:
            declared[key] = None
            notes.append(f"Not taken over: {key} {words}.")
    done = replace(sketch, declared=declared, notes=tuple(notes), guessed=sketch.guessed & declared.keys())
    if not done.gaps and _domain_size(declared) < 2:
        return replace(done, declared=None).noted("Left out: it has one possible value only.")
    return done


def _problem(declared: Declared) -> tuple[str | None, str] | None:
    """The first key that the grammar refuses, and its message; None if it refuses nothing."""
    try:
        _GRAMMAR.validate_python(_filled(declared))
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        context = detail.get("ctx", {})
        path = [part for part in (*detail["loc"], *context.get("path", ())) if not str(part).startswith("@")]
        words = context.get("words") or "isn't supported here"
        key = next((str(part) for part in path if str(part) in declared), None)
        return key, str(words)
    return None


def _filled(declared: Declared) -> dict[str, object]:
    """A declaration with harmless values in its gaps."""
    filled: dict[str, object] = {key: value for key, value in declared.items() if value is not None}
    kind = filled.setdefault("type", "category")
    if "values" not in filled and (declared.get("type") is None or "values" in declared):
        filled["values"] = ["a value that is still to be given", "another such value"]
    gaps = [end for end in ("min", "max") if end in declared and declared[end] is None]
    if len(gaps) == 2:
        filled |= KINDS[str(kind)].STAND_INS if str(kind) in KINDS else {}
    elif gaps:
        end = declared["max" if gaps == ["min"] else "min"]
        step = (-1 if gaps == ["min"] else 1) if isinstance(end, int | Decimal) else 0
        filled[gaps[0]] = end + step if step and isinstance(end, int | Decimal) else end
    return filled


def _domain_size(declared: Declared) -> int:
    part = _GRAMMAR.validate_python(cast(dict[str, object], declared)).part("")
    return part.size if isinstance(part, Column) else 2
