"""Tests of the page of decisions."""
