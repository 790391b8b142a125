"""The training script that pages run: a stand-in for a program with PyTorch, which needs a GPU.

It becomes the C++ trainer of tools/trainer, with ranges as PyTorch's emit_nvtx(record_shapes=True)
pushes them and backward on autograd's thread. Options go to the trainer."""

import os
import sys

given = sys.argv[1:]
usual = {"--model": "cnn", "--mode": "autograd-thread", "--ranges": "pytorch"}
os.execvp("trainer", [
    "trainer", *(word for option in usual.items() if option[0] not in given for word in option),
    *given
])
