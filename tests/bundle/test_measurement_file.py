"""The file of noisy numbers takes a release's own answers alone, by type and at run time."""

from collections.abc import Iterator
from typing import get_args, get_type_hints

import numpy as np
import pytest

from dpsynth.columns.measurement import (
    EvidenceCounts,
    ExactTotal,
    Measurement,
    Observation,
    OwnAnswer,
    PublicCounts,
)
from dpsynth.model.measurement_file import measurement_table, read_measurements, write_measurements

OWN = get_args(OwnAnswer)


def kinds_of(base: type[Observation]) -> Iterator[type[Observation]]:
    yield base
    for kind in base.__subclasses__():
        yield from kinds_of(kind)


OTHERS = [kind for kind in kinds_of(Observation) if not issubclass(kind, OWN)]


def test_own_answers_are_told_from_all_other_counts_by_type():
    """A type checker refuses what isn't a subclass of the types that the writers ask for."""
    assert set(OWN) == {Measurement, ExactTotal}
    assert {Observation, PublicCounts, EvidenceCounts} <= set(OTHERS)
    for own in OWN:
        assert not any(issubclass(own, other) for other in OTHERS if other is not Observation)
    for writer in (measurement_table, write_measurements):
        asked = get_type_hints(writer)
        (singles,), (answers,) = get_args(asked["singles"]), get_args(asked["answers"])
        assert singles == OwnAnswer and answers is Measurement


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("field", ["singles", "answers"])
def test_what_is_no_answer_of_this_release_is_not_written_as_one(written, publication, kind, field):
    """The same counts, columns and noise as a measurement: only the type says that they aren't one."""
    own = getattr(publication, field)
    one = own[-1]
    foreign = kind(one.clique, one.values, one.noise, one.scale)
    with pytest.raises(TypeError, match=f"{kind.__name__} is no answer of this release"):
        written(**{field: (*own[:-1], foreign)})
    written(**{field: (*own[:-1], Measurement(one.clique, one.values, one.noise, one.scale))})


def test_an_earlier_releases_answers_are_not_written_again_as_this_ones(written, publication):
    found = read_measurements(written() / "measurements.parquet", publication.columns)
    for field in ("singles", "answers"):
        read = getattr(found, field)
        assert read and all(
            np.array_equal(a.values, b.values) for a, b in zip(read, getattr(publication, field), strict=True)
        )
        with pytest.raises(TypeError, match="EvidenceCounts is no answer of this release"):
            written(**{field: read})
