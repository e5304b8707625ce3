"""Learning from profiles: what a run says of every question, without trying a single answer."""
