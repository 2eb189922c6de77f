"""Local randomisers: what a respondent does to one answer before it leaves her side.

Invariant: pure arithmetic on one code and on random bits. Every probability is an exact rational, no float
decides a report, and every bit comes from the operating system's cryptographic generator.
"""

from dpsynth.wings.local.randomisers.choosing import best, protocol
from dpsynth.wings.local.randomisers.randomiser import Answer, Randomiser, log_above, odds_within

__all__ = ["Answer", "Randomiser", "best", "log_above", "odds_within", "protocol"]
