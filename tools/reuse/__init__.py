"""Whether an engine or a cache of one version of TensorRT for RTX can be used with another: measured, and the page.

    python -m tools.reuse          # builds and reads on every version that runs here, and writes docs/reuse.json
    make docs                      # makes docs/reuse.md of it

What a machine without a GPU cannot tell is not in the file, and the page says so.
"""
