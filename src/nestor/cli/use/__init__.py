"""Commands that use a policy in a build."""
