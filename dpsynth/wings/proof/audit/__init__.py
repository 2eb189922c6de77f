"""Audits: releases of made-up tables, replayed on neighbours and attacked, beside the guarantee claimed."""

from dpsynth.wings.proof.audit.auditing import Audit, Extent, audit
from dpsynth.wings.proof.audit.page import as_facts, in_words, page

__all__ = ["Audit", "Extent", "as_facts", "audit", "in_words", "page"]
