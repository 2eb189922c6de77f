"""Requests for statistics, unchecked: as a configuration has them, and as none can."""

from dpsynth.columns.statistic_kinds import Crosstab, Mean


def crosstab(columns: tuple[str, ...]) -> Crosstab:
    return Crosstab.model_construct(crosstab=columns)


def mean_of(of: str, by: str | None = None) -> Mean:
    return Mean.model_construct(mean=of, by=() if by is None else (by,), where=None)
