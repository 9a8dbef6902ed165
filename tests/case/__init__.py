"""Tests of harness.case."""
