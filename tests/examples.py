"""The number of examples of a property test: all of them, or the tenth part of a quick run.

``pytest --hypothesis-profile=full`` tries every property on all of its examples, on new ones each time.
The profile "quick", which is the usual one, tries the same few each time; so does "unshrunk", which ends with
the first that fails.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings

PART, LEAST = 10, 12


def examples(count: int, **more: Any) -> settings:
    """Settings of a property test that has so many examples in a whole run."""
    if settings.get_current_profile_name() != "full":
        count = min(count, max(LEAST, count // PART))
    return settings(max_examples=count, **more)
