"""Commands about events of runs, and what whole programs cost."""
