"""Fetch the projects of a tier: recipes, the archive that has their sources, builds."""
