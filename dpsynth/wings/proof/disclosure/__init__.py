"""Older disclosure control: suppression of small counts, rounding, k-anonymity.

None of it is a guarantee; ``dpsynth.wings.proof.attacks`` shows why. Here it makes views of what is private
already.

Its modules are imported one by one: those that the configuration needs load no solver.

Invariant: pure functions of counts and codes that they are handed; nothing is read and nothing random.
"""
