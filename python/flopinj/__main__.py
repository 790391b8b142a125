"""python -m flopinj: the program flopinj."""

from flopinj._programs import flopinj

if __name__ == "__main__":  # engines of processes read it anew in each
    flopinj()
