"""Measurements that somebody else made: the file that is sent in, how it is made, scrubbed and read."""
