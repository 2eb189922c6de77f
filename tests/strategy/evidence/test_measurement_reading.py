"""What a bundle's file of noisy numbers gives back, and the files that it refuses."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.columns.measurement import ExactTotal, Measurement
from dpsynth.model.measurement_file import UnusableMeasurements, measurement_table, read_measurements


def same(one, other):
    return (
        one.clique == other.clique
        and np.array_equal(one.values, other.values)
        and (one.noise, one.scale) == (other.noise, other.scale)
        and one.values.dtype == other.values.dtype == np.int64
    )


def all_same(ones, others):
    return len(ones) == len(others) and all(map(same, ones, others))


@pytest.mark.parametrize("kind", ["publication", "merged"])
def test_what_a_release_answered_comes_back_as_it_was(written, kind, request):
    of = request.getfixturevalue(kind)
    found = read_measurements(written(of) / "measurements.parquet", of.columns)
    assert all_same(found.singles, of.singles) and all_same(found.answers, of.answers)
    assert found.compression.digest == of.compression.digest


def test_a_column_measured_alone_over_groups_is_no_answer_over_values(written, merged):
    """A strategy may measure one column like a clique: three groups are not five values."""
    plan = merged.columns[1].name
    alone = Measurement((plan,), np.array([4, 5, 6]), "gaussian", 2.0)
    of = replace(merged, answers=(*merged.answers, alone))
    found = read_measurements(written(of) / "measurements.parquet", of.columns)
    assert all_same(found.singles, of.singles) and all_same(found.answers, of.answers)


def test_an_exact_number_of_rows_comes_back_exact(written, publication):
    singles = (ExactTotal.of(40), *publication.singles[1:])
    of = replace(publication, singles=singles)
    found = read_measurements(written(of) / "measurements.parquet", of.columns)
    assert all_same(found.singles, singles) and found.singles[0].variance == 0


def test_answers_about_other_columns_or_values_are_refused(written, publication):
    path = written() / "measurements.parquet"
    fewer = publication.columns[:-1]
    turned = (publication.columns[1], publication.columns[0], *publication.columns[2:])
    elsewhere = (*fewer, replace(publication.columns[-1], markers=("gone",)))
    for columns in (fewer, turned, elsewhere):
        with pytest.raises(UnusableMeasurements, match="other columns"):
            read_measurements(path, columns)


def rewritten(path, change):
    """The same file with some of it changed."""
    table = pq.read_table(path)
    metadata = {k.decode(): v.decode() for k, v in table.schema.metadata.items()}
    listed = json.loads(metadata["dpsynth.measurements"])
    table = change(table, metadata, listed) or table
    metadata["dpsynth.measurements"] = json.dumps(listed)
    pq.write_table(table.replace_schema_metadata(metadata), path)


FAULTS = {
    "a cell is missing": lambda table, told, listed: table.slice(1),
    "cells twice": lambda table, told, listed: pa.concat_tables([table, table]),
    "cells out of order": lambda table, told, listed: table.take(np.arange(table.num_rows)[::-1]),
    "one more in the list": lambda table, told, listed: listed.append(listed[-1]),
    "another shape": lambda table, told, listed: listed[1].update(shape=[1, *listed[1]["shape"]]),
    "shapes changed about": lambda table, told, listed: listed[-1].update(shape=listed[-1]["shape"][::-1]),
    "an unknown column": lambda table, told, listed: listed[1].update(columns=["nobody"]),
    "an unknown noise": lambda table, told, listed: listed[1].update(noise="pink"),
    "noise without a scale": lambda table, told, listed: listed[1].update(scale=0.0),
    "noise without end": lambda table, told, listed: listed[1].update(scale=float("inf")),
    "a scale that is no number": lambda table, told, listed: listed[1].update(scale="2"),
    "groups without values": lambda table, told, listed: told.update(
        {"dpsynth.groups": '{"pay": [0, 2, 1, 0]}'}
    ),
    "no groups": lambda table, told, listed: told.pop("dpsynth.groups") and None,
    "by groups or not": lambda table, told, listed: listed[-1].update(by_group=[]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_file_is_refused_whole(written, merged, fault):
    path = written(merged) / "measurements.parquet"
    rewritten(path, FAULTS[fault])
    with pytest.raises(UnusableMeasurements, match="damaged"):
        read_measurements(path, merged.columns)


def test_a_file_of_another_version_one_cut_short_and_none_are_refused(written, publication):
    path = written() / "measurements.parquet"
    rewritten(path, lambda table, told, listed: told.update({"dpsynth.format": "dpsynth measurements 1"}))
    with pytest.raises(UnusableMeasurements, match="another version"):
        read_measurements(path, publication.columns)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UnusableMeasurements):
        read_measurements(path, publication.columns)
    path.unlink()
    with pytest.raises(UnusableMeasurements, match="can't be opened"):
        read_measurements(path, publication.columns)


def test_a_file_without_a_word_of_its_own_is_refused(tmp_path, publication):
    table = measurement_table(
        publication.singles, publication.answers, publication.columns, publication.compression
    )
    pq.write_table(table.replace_schema_metadata(None), tmp_path / "m.parquet")
    with pytest.raises(UnusableMeasurements, match="another version"):
        read_measurements(tmp_path / "m.parquet", publication.columns)
