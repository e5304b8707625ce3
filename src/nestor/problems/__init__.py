"""The decisions that Nestor can take: one frozen description each."""
