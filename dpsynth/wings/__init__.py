"""The wings: what some users need beside a release. The core works without any of them, and imports none."""
