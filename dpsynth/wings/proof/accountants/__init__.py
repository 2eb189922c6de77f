"""Accountants side by side: what each says of a plan, and of the releases of an account. Figures only.

Invariant: nothing is charged by what stands here. What counts is ``dpsynth.accounting.measures``.
"""
