"""Tests of the accountants side by side."""
