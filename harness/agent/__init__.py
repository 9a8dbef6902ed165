"""The program that runs beside the engine: Python 3.8, standard library, knows nothing of the host."""
