"""The program that runs beside the engine, in Python 3.8 with the standard library, without knowledge of the host."""
