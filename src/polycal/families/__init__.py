"""One file for each idea: what being calibrated means, how to search for its witness, and the witness."""
