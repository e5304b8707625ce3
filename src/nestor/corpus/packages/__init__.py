"""Source packages of the archive: drawn at random, and captured by their own builds."""
