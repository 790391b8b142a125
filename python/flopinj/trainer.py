"""python -m flopinj.trainer: a small training program for the simulated GPU, to try flopinj with.

    flopinj run --simulate -o demo.pb -- python -m flopinj.trainer --model cnn
"""

from __future__ import annotations

import sys

from flopinj._programs import TREE, become

if __name__ == "__main__":
    become(str(TREE / "lib" / "flopinj" / "trainer" / "trainer"), sys.argv[1:])
