"""Python values as the plain values that YAML has, so that one grammar checks both.

A configuration in Python holds what people have there: tuples, arrays, dates, numbers of numpy. Each becomes
what the same configuration would hold in YAML.

Invariant: nothing is rounded or guessed. A value that YAML has no spelling for is refused with its key.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import PurePath

import numpy as np

from dpsynth.config.complaints import dotted
from dpsynth.config.yaml_reader import KeyPath, Value
from dpsynth.errors import ConfigError


def plain_mapping(values: Mapping[str, object], path: KeyPath = ()) -> dict[str, Value]:
    """A mapping of keys to plain values.

    Raises:
        ConfigError: a key is no text, or a value has no plain form; the message names the key.
    """
    for key in values:
        if not isinstance(key, str):
            raise ConfigError(
                f"{dotted(path)} has a key of type {type(key).__name__}; a key must be a text, such as 'age'."
            )
    return {key: plain_value(value, (*path, key)) for key, value in values.items()}


def plain_value(value: object, path: KeyPath) -> Value:
    """A value as YAML would have it.

    Args:
        value: a text, a number, a truth value, None; a date, a time or a duration; a list, an array or a
            mapping of these.
        path: its key, for messages.

    Raises:
        ConfigError: it has no plain form.
    """
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()
    elif isinstance(value, np.generic | np.ndarray):
        value = value.item() if np.ndim(value) == 0 else value.tolist()
    elif hasattr(value, "to_numpy") and hasattr(value, "__len__"):
        # A column or an index of pandas or Polars.
        value = list(value.to_numpy())
    if isinstance(value, str | bool | int | Decimal | None):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, float):
        return Decimal(repr(float(value)))
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, timedelta):
        return f"PT{Decimal(value // timedelta(microseconds=1)).scaleb(-6).normalize():f}S"
    if isinstance(value, Mapping):
        return plain_mapping(value, path)
    if isinstance(value, Set):
        raise ConfigError(f"{dotted(path)} must be a list: a set has no order of its own.")
    if isinstance(value, list | tuple | range):
        return [plain_value(item, (*path, i)) for i, item in enumerate(value)]
    raise ConfigError(
        f"{dotted(path)} is of type {type(value).__name__}, which no configuration can hold: give a text, a "
        "number, a date, a list or a mapping."
    )
