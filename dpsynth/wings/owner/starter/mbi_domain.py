"""The domain.json of mbi (private-pgm), which holds each column's number of codes only.

Its tables hold codes from 0. They are read as whole numbers, one cell a code.
"""

from __future__ import annotations

from dpsynth.columns.declaration import MAX_DOMAIN_SIZE, ONE_A_VALUE, Declared
from dpsynth.errors import ConfigError
from dpsynth.wings.owner.starter.documents import Mapping, shown
from dpsynth.wings.owner.starter.fitting import fitted
from dpsynth.wings.owner.starter.sketch import Draft, Sketch

FORMAT = "mbi"
NAME = "mbi domain.json"


def is_domain(document: Mapping) -> bool:
    """True if a document looks like such a domain: names with whole numbers, and nothing else."""
    return bool(document) and all(type(size) is int for size in document.values())


def read_domain(document: Mapping, file: str) -> Draft:
    """A draft in which each column holds the codes from 0 to its size less one.

    Raises:
        ConfigError: a size is no whole number of at least 1.
    """
    columns = []
    for name, size in document.items():
        if type(size) is not int or size < 1:
            raise ConfigError(
                f"{file}: '{shown(name)}' must have a whole number of at least 1, the size of its domain."
            )
        declared: Declared = {"type": "integer", "min": 0, "max": size - 1}
        if ONE_A_VALUE < size <= MAX_DOMAIN_SIZE:
            declared["bins"] = size
        # Codes are made to be read: a code that most rows have says nothing of a misread.
        expected: Declared = {"first": 1, "last": 1, "one_value": 1}
        columns.append(fitted(Sketch(name, {**declared, "missing": False, "expected": expected})))
    origin = f"{file} is a domain.json of mbi: the columns' numbers of codes. Codes count from 0."
    return Draft((origin,), tuple(columns))
