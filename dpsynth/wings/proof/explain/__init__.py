"""Explanations: what a mechanism, a plan or a published guarantee lets an attacker find out, in numbers.

Invariant: everything here follows from public parameters. No table is read, and nothing is charged.
"""

from dpsynth.wings.proof.explain.facts import Question, facts
from dpsynth.wings.proof.explain.page import in_words, page
from dpsynth.wings.proof.explain.subjects import Subject, subject

__all__ = ["Question", "Subject", "facts", "in_words", "page", "subject"]
