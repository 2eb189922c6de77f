"""The plan of a release: steps, shares, noise scales and forecasts, made before the table is read."""
