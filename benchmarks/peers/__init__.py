"""The peers: other libraries, each in an environment of its own, spoken to through files."""
