"""Makes a failing model small while it goes on showing the same failure.

`shown` defines "the same", `simpler` makes candidates, `search` tries and remembers them.

Polygraphy's `debug reduce` (0.53.6) starts the command that it is given once a try, without a time limit, and each
start loads the engine anew; a warm agent takes a tenth of a second. It looks for one place where the model may end and
one where it may begin: between the two it takes out only nodes that lead nowhere, it cuts no shapes, and it begins anew
when it was stopped. An exit code or a pattern is its failure, so that one failure is traded for another.
"""
