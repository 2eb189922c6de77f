"""The plan of a release: steps, shares, noise scales and forecasts, worked out before anything is read."""
