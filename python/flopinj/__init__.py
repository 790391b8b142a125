"""flopinj counts the floating-point operations that a training program executes on CUDA GPUs.

Importing it loads nothing else: pandas, Arrow, matplotlib and torch are imported when they are
asked for.
"""
