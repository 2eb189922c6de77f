"""Planted faults: mistakes that the tests must notice, each with those that do."""
