"""Explanations: what a mechanism, a plan or a published guarantee lets an attacker find out, in numbers.

Invariant: everything here follows from public parameters. No table is read, and nothing is charged.
"""

from dpsynth.wings.proof.explain.facts import Question, facts
from dpsynth.wings.proof.explain.page import page
from dpsynth.wings.proof.explain.subjects import Subject, subject
from dpsynth.wings.proof.explain.words import in_words

__all__ = ["Question", "Subject", "facts", "in_words", "page", "subject"]
