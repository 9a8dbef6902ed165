"""Makes a failing model small while it goes on showing the same failure.

`shown` says what "the same" is, `cut` and `simpler` make candidates, `search` tries them, `journal` remembers them.

Why not what is there already:

- Polygraphy's `debug reduce` (0.53.6) starts the command that it is given once a try, without a time limit, and each
  start loads the engine anew; an agent that is warm takes a tenth of a second. It looks for one place where the model
  may end and one where it may begin, by halving or one after the other: between the two it takes out only what leads
  nowhere, it cuts no shapes, attributes or weights, and it begins anew when it was stopped. What fails by exit code or
  pattern is a failure, so that one is traded for another.
- `onnx.utils.Extractor` (1.23) takes inputs and outputs by name, each of which has to be in the model's value_info, and
  follows data backwards alone: what a cut takes from the middle of a constant (the scale of a weight, the shape of a
  Reshape) is an input or is missing, never a constant; names that a subgraph takes from around it, it does not see; and
  a model with a sparse initialiser it refuses.
"""
