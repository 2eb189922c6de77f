"""The readings of every codec agree with its codes: what is clipped, other or no value, is coded so."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.codec import INVALID, Reading
from dpsynth.columns.numeric import NumericCodec
from tests.columns.declared import COLUMNS, WILD


def agree(codec, texts):
    """Refuse readings that contradict the codes of the same texts."""
    stripped = [None if t is None else t.strip() for t in texts]
    array = pa.array(stripped, pa.string())
    codes, readings = codec.encode(array), codec.readings(array)
    assert len(readings) == len(texts)
    assert ((readings == Reading.NONE) == (codes == INVALID)).all(), "NONE is not INVALID"
    assert (codes[readings == Reading.BELOW] == 0).all(), "below the first value is not the first cell"
    assert (codes[readings == Reading.ABOVE] == len(codec.labels) - 1).all()
    others = codes[readings == Reading.OTHER]
    assert (others == others[:1]).all(), "all other values have more than one cell"
    values = np.asarray(codec.parsed(array).is_valid())
    assert len(values) == len(texts) and not (values & (readings == Reading.NONE)).any(), "no value is parsed"


@settings(deadline=None)
@given(COLUMNS, st.lists(WILD, max_size=30))
def test_readings_agree_with_codes(column, texts):
    agree(column.codec, texts)


@settings(deadline=None)
@given(COLUMNS, st.integers(0, 2**32))
def test_a_value_that_a_codec_writes_is_read_as_it_stands(column, seed):
    rng = np.random.default_rng(seed)
    codec = column.codec
    codes = rng.integers(0, len(codec.labels), 40)
    values = codec.decode(codes, rng)
    texts = codec.text(values)
    assert (codec.readings(texts) == Reading.VALUE).all()
    assert codec.text(codec.parsed(texts).cast(codec.arrow_type)).equals(texts)


def test_ends_are_values_and_what_lies_beyond_is_clipped():
    codec = NumericCodec((0.0, 10.0, 20.5), 0, integer=True)
    texts = pa.array(["-1", "0", "20", "20.4", "21", "x", None])
    assert codec.readings(texts).tolist() == [1, 0, 0, 0, 2, 4, 4]


class Lax(CategoryCodec):
    """A codec that takes for a value what it does not code."""

    def readings(self, texts):
        return np.zeros(len(texts), dtype=np.int8)


def test_readings_that_contradict_the_codes_would_be_seen():
    with pytest.raises(AssertionError, match="NONE is not INVALID"):
        agree(Lax(("a", "b")), ["a", "c"])
