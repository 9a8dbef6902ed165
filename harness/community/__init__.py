"""Measurements that somebody else made: how they are sent in (submit), and what is held against them (intake)."""
