"""Prefect's server that is set up on this machine, and a quick check that it answers.

Invariant: nothing is started, and the server is only greeted.
"""

from __future__ import annotations

from prefect import get_client
from prefect.settings import PREFECT_API_URL

from dpsynth.errors import DpsynthError


def configured_server() -> str | None:
    """The address of Prefect's server, from the environment or Prefect's own files; None without one."""
    return PREFECT_API_URL.value()


def check_usable(address: str, instead: str) -> None:
    """Greet the server.

    Args:
        address: address of its API.
        instead: advice for those who don't need it.

    Raises:
        DpsynthError: it doesn't answer, or doesn't let this user in.
    """
    try:
        with get_client(sync_client=True) as client:
            client.hello()
    except Exception as error:
        # The first line of Prefect's long message names the error.
        why = str(error).split(chr(10), maxsplit=1)[0] or type(error).__name__
        raise DpsynthError(
            f"Prefect's server at {address}, which PREFECT_API_URL names, can't be used: {why}. Start it; or "
            f"correct PREFECT_API_URL and PREFECT_API_AUTH_STRING; or {instead}."
        ) from None
