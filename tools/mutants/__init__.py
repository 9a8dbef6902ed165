"""`make mutants`: breaks the code that judges in thousands of small ways, and counts what the tests notice.

No tool at hand does this here. mutmut 3.8 changes nothing outside functions and nothing in decorated ones, and here
tolerances, thresholds, patterns and tables of classes stand at the top of modules, and readers are properties or
cached; it also makes its copies in the checkout. cosmic-ray 8.7 writes each mutant over the file in the checkout,
starts Python anew for each, and neither drops statements nor picks tests by line. mutatest 3.1 (2022) writes into
the checkout's __pycache__ and wants a coverage older than 6.

Here a mutant is a changed syntax tree that lives in memory alone. One process collects the tests once; a fork of it
puts a mutant's code into the functions that are already loaded and runs the tests that execute the line, cheapest
first. A mutant of what runs when modules are loaded gets a fork that has loaded nothing of the project yet, and all
tests of its area. Programs that tests start see the mutant through `hook/sitecustomize.py`, unless they start without
PYTHONPATH, as agents do; containers do not see it.
"""
