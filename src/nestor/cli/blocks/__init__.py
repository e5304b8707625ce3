"""Commands about basic blocks: extraction, measurement and cost models."""
