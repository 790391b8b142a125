"""python -m flopinj: the program flopinj."""

from flopinj._programs import flopinj

flopinj()
