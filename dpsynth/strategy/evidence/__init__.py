"""Evidence beside the release's own answers: earlier releases of the dataset, and a public table."""
