"""What compiler wrappers record of a build, and how it becomes a corpus."""
