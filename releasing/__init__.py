"""What a release of the package needs beside the build: its bill of materials, and advisories."""
