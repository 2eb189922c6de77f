"""The configs that are served and the signals that end it, both before Prefect is loaded.

Invariant: each config has a schedule and a name of its own.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsynth.config import Schedule, Spec, load
from dpsynth.errors import ConfigError


@dataclass(frozen=True)
class Served:
    """A config with a schedule.

    Attributes:
        config: the absolute path of its file.
    """

    config: Path
    spec: Spec
    schedule: Schedule


def checked(configs: Sequence[Path]) -> list[Served]:
    """The configs, each under a name of its own.

    Raises:
        ConfigError: a config can't be used, has no schedule, or has the name of another.
    """
    served: dict[str, Served] = {}
    for config in configs:
        spec = load(config)
        if spec.schedule is None:
            raise ConfigError(
                f"{config} has no key schedule, so there is no time to release at. Give it one, such as "
                "schedule: {cron: '0 3 1 * *', timezone: Europe/Paris}."
            )
        if spec.release in served:
            raise ConfigError(
                f"{served[spec.release].config} and {config} have the same name in the key release, "
                f"'{spec.release}'. Give them two names."
            )
        served[spec.release] = Served(config.resolve(), spec, spec.schedule)
    return list(served.values())


class StopSignals:
    """SIGINT and SIGTERM, remembered from now on, so that they cut nothing in the middle.

    A service may be stopped at any moment, also while it starts. An exception that is raised wherever the
    signal finds it would come out of other libraries as another one.

    Attributes:
        asked: true once one of them has come.
    """

    def __init__(self) -> None:
        """Take the place of all handlers of both."""
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.ask)

    def ask(self, *_: object) -> None:
        """Remember a signal."""
        self.asked = True
