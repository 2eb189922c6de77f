"""The local model: the contract with respondents, their reports, and what follows from many of them.

Invariant: a contract is public, and so is a report once it is written. A record is seen by
``dpsynth.local.reporting`` alone, at the respondent's side, and nothing of it but a randomised report stays.
"""
