"""Prefect flows: orchestration only, no mathematics and no data."""
