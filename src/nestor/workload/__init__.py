"""Run programs of a corpus on real inputs, and measure what they execute."""
