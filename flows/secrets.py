"""Addresses of databases out of Prefect's Secret blocks.

Invariant: what a block holds stays in this process. It is no parameter, no result and no log of Prefect's,
and no message quotes it.
"""

from __future__ import annotations

from typing import cast

from prefect.blocks.system import Secret

from dpsynth.config.source import Source
from dpsynth.errors import ConfigError
from dpsynth.pipeline.inputs import SECRET, hold


def unlock(source: Source) -> None:
    """Hand the address of a source over that names a Secret block; no other source needs it.

    Raises:
        ConfigError: there is no such block, or it holds no text.
    """
    name = source.url_from
    if name is None or not name.startswith(SECRET):
        return
    block = name.removeprefix(SECRET)
    try:
        found = cast("Secret[str]", Secret.load(block)).get()
    except Exception:
        found = None
    if not isinstance(found, str) or not found:
        raise ConfigError(
            f"source.url_from names the Secret block {block}, and Prefect has none of this name with a text "
            "in it. Make it in Prefect, under Blocks, with the URL as its value. Nothing was charged."
        )
    hold(name, found)
