"""Suites: foreign collections of models with data of their own, run as cells."""
