"""Find the decisions of a policy that make a program fail."""
