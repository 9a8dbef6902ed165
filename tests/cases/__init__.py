"""Tests of the cases."""
