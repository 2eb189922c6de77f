"""Cautions on public marginals, given in the configuration, not asked of the table.

Invariant: public facts only.
"""

from __future__ import annotations

from dpsynth.columns.measurement import PublicMarginals


def cautions_with_public_marginals(public: PublicMarginals) -> tuple[str, ...]:
    """Cautions on public marginals, as sentences."""
    if not public.marginals:
        return ()
    named = "; ".join(" with ".join(m.clique) for m in public.marginals)
    rows = "" if public.rows is None else f" So is the number of rows, {public.rows:,}."
    return (
        "Some numbers were stated beforehand as public knowledge, and not asked of the private table: those "
        f"of {named}.{rows} The guarantee is not about them. Tables that are “known” repeat them, and the "
        "model and the synthetic table were made to agree with them. If they are wrong for the private "
        "table, these tables are wrong too, and so is whatever rests on them.",
    )
