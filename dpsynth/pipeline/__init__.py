"""One run of a release: inputs, reservation, steps, outputs, result."""
