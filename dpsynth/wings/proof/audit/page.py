"""An audit as one page, for those who are asked to believe its guarantee.

Invariant: the page runs no script and fetches nothing. It holds nothing about a private table.
"""

from __future__ import annotations

from dpsynth.page_templates import environment
from dpsynth.wings.proof.audit import words
from dpsynth.wings.proof.audit.auditing import Audit


def page(audit: Audit, command: str) -> str:
    """The page as HTML.

    Args:
        audit: the outcome.
        command: the command that makes it again.
    """
    pages = environment()
    pages.filters["bound"] = words.bound_in_words
    return pages.get_template("audit.html.j2").render(
        audit=audit,
        claim=words.claim_in_words(audit),
        many=words.many_in_words(audit),
        asked=words.ASKED,
        command=command,
    )
