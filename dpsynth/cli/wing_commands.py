"""The commands that wings add, each imported when it is called for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from dpsynth.wing import Wing, at, wings

if TYPE_CHECKING:
    from typer._click import Command, Context


class CommandsOfAll(TyperGroup):
    """The core's commands, then those of the wings."""

    def list_commands(self, ctx: Context) -> list[str]:
        """Their names, in the order of the help."""
        return [*super().list_commands(ctx), *(name for wing in wings() for name in wing.commands)]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """A command, imported now if a wing adds it."""
        if cmd_name not in self.commands:
            wing = next((wing for wing in wings() if cmd_name in wing.commands), None)
            if wing is not None:
                self.commands[cmd_name] = _loaded(wing, cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """The command that is meant. Where there is none, all are loaded, to name the nearest."""
        if self.get_command(ctx, args[0]) is None:
            for name in self.list_commands(ctx):
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


def _loaded(wing: Wing, name: str) -> Command:
    added = at(wing.commands[name])
    if not isinstance(added, typer.Typer):
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name, rich_help_panel=wing.title)(cast(Callable[..., None], added))
        added = alone
    command = get_command(added)
    assert isinstance(command, TyperCommand | TyperGroup)
    command.rich_help_panel = wing.title
    return command
