"""What code uses of TensorRT's interface, and what of it a version lacks. Nothing of the code is run or imported."""
