"""Makes a failing model small while it goes on showing the same failure.

`shown` defines "the same", `simpler` makes candidates, `search` tries them.

Polygraphy's `debug reduce` (0.53.6) starts the command that it is given once a try, without a time limit, and each
start loads the engine anew; a warm agent takes a tenth of a second. It looks for one place where the model may end and
one where it may begin: between the two it takes out only nodes that lead nowhere, and it cuts no shapes. An exit code
or a pattern is its failure, so that one failure is traded for another.
"""
