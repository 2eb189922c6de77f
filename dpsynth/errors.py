"""Errors that users may meet, each with its exit code.

Invariant: a message is made of public facts only (the config, file names, column
names, budgets). No cell, count or row number of a private table may enter one, so
messages can be shown, logged and kept by an orchestrator.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def spelt_out(text: str) -> str:
    r"""A text on one line, in which characters that can't be printed are escapes.

    >>> spelt_out("a\x1b[31m")
    'a\\x1b[31m'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def nearest(word: object, known: Collection[str]) -> str:
    """The advice that follows an unknown word, or "" if no known word is close.

    >>> nearest("epsilom", ["delta", "epsilon"])
    " (did you mean 'epsilon'?)"
    """
    from difflib import get_close_matches

    close = get_close_matches(str(word).casefold(), {k.casefold(): k for k in known}, n=1, cutoff=0.6)
    return f" (did you mean '{next(k for k in known if k.casefold() == close[0])}'?)" if close else ""


class DpsynthError(Exception):
    """Base of the errors that are shown to users as one plain paragraph."""

    exit_code = 1

    def __str__(self) -> str:
        """The paragraph on one line; what can't be printed in a key or a file's name is spelt out."""
        return spelt_out(super().__str__())


class ConfigError(DpsynthError):
    """The configuration can't be used; nothing was read and nothing charged."""

    exit_code = 2


class BudgetRefused(DpsynthError):
    """The ledger, or the rest of a release's budget, doesn't allow the spend."""

    exit_code = 3


class NotApproved(BudgetRefused):
    """The ledger's policy doesn't allow it: approvals, or the key of somebody who may, are missing."""


class SourceError(DpsynthError):
    """The private table can't be opened or lacks a declared column."""

    exit_code = 4


class Interrupted(DpsynthError):
    """The release was stopped midway and can be resumed."""

    exit_code = 5


class Paused(Interrupted):
    """The release waits for its owner's decision.

    Its table seems to be empty, something was misread, or its finished table contradicts its counts or fails
    criteria that were declared for it.

    Attributes:
        release_id: the name of the release.
        warnings: its warnings as paragraphs, each of which has been told already.
        what: where it is paused, and because of what.
        without: the key, and its value, with which there is no pause.
        ending: the message without the warnings.
    """

    def __init__(
        self,
        release_id: str,
        warnings: Sequence[str],
        what: str,
        ways: str,
        without: str = "privacy.on_empty: go",
    ) -> None:
        """A message of the warnings, and of the ways to go on."""
        self.release_id, self.warnings, self.what, self.without = release_id, tuple(warnings), what, without
        self.ending = f"Release {release_id} is paused {what}. {ways} With {without} there is no pause."
        super().__init__(" ".join((*warnings, self.ending)))


class TakenOver(DpsynthError):
    """Another copy of the release went on, or the release was ended; this copy publishes nothing."""


class ModelFileError(DpsynthError, ValueError):
    """A file is not a model that can be loaded, or a model is not one that can be saved."""


class StepFailed(DpsynthError):
    """A step failed for a reason that may quote private data; details are withheld.

    Raised in place of any foreign exception once the private table is open: parsers and
    libraries quote cell values in their messages.
    """

    @classmethod
    def of(cls, step: str, error: BaseException, details: str | None = None) -> StepFailed:
        """The error of a step, with the step's public name and the original error's type, never its text.

        Args:
            step: name of the step.
            error: the original error.
            details: path of a private file that holds the traceback, if one was written.
        """
        where = "withheld; --debug writes them to a private file" if details is None else f"in {details}"
        return cls(f"Step '{step}' failed: {type(error).__name__}; details {where}.")
