"""The planted faults, from the text files beside this one.

Each is one mistake in the product, as a piece of a function and what stands in its place, and the tests that
notice it. Pieces are short and no file is named, so that the lists survive when code moves.

A fault is a paragraph: its name, a colon and what it breaks; the function; the old piece, each line after a
minus; the new one, each line after a plus, or none; the tests. A line of minus or plus alone is empty. The
first paragraph of a file says what its faults have in common, and one that begins with # is a heading.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fault:
    """A mistake that would break a promise.

    Attributes:
        name: a few words, unique.
        breaks: the consequence, in one sentence.
        where: the qualified name of the function, class or constant that holds the mistake.
        old: a piece of its source that occurs once.
        new: what stands there with the fault.
        tests: ids of tests, at least one of which fails with the fault.
    """

    name: str
    breaks: str
    where: str
    old: str
    new: str
    tests: tuple[str, ...]


def _faults(path: Path) -> Iterator[Fault]:
    _, *paragraphs = path.read_text(encoding="utf-8").split("\n\n")
    for paragraph in paragraphs:
        if not paragraph.startswith("#"):
            head, where, *lines = paragraph.splitlines()
            name, _, breaks = head.partition(": ")
            old, new = ("\n".join(line[2:] for line in lines if line[0] == sign) for sign in "-+")
            yield Fault(name, breaks, where, old, new, tuple(line for line in lines if line[0] not in "-+"))


FAULTS = tuple(fault for path in sorted(Path(__file__).parent.glob("*.txt")) for fault in _faults(path))
