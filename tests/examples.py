"""The number of examples of a property test, or of a loop: all of them, or a part of them in a quick run.

``pytest --hypothesis-profile=full`` tries every property on all of its examples, on new ones each time.
The profile "quick", which is the usual one, tries the same few each time; so does "unshrunk", which ends with
the first that fails.
"""

from typing import Any

from hypothesis import settings

PART, LEAST = 32, 5


def examples(count: int, **more: Any) -> settings:
    """Settings of a property test that has so many examples in a whole run."""
    return settings(max_examples=cases(count), **more)


def cases(count: int, part: int = PART, least: int = LEAST) -> int:
    """The number of cases that a loop tries: all in a whole run, else one in ``part`` and at least a few."""
    if settings.get_current_profile_name() == "full":
        return count
    return min(count, max(least, count // part))
