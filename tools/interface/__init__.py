"""The interface of every TensorRT, read from its bindings and its sources, as harness/matrix/interface.tsv."""
