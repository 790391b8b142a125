#!/usr/bin/env python3
"""The oracle's multiply-adds of the recorded networks against PyTorch's own FlopCounterMode, for
networks whose convolutions have no groups: of grouped ones FlopCounterMode counts the gradient
by weights as if they had none (PyTorch 2.15). tools/dev record-frameworks runs it."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
import torch  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import networks  # noqa: E402

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import as_gpu  # noqa: E402

UNGROUPED = ("gpt", "gpt_unfused", "alexnet", "vgg", "resnet18", "resnet_bottleneck", "densenet",
             "inception", "vit", "swin", "unet")


def counted(run):
    with FlopCounterMode(display=False) as counter:
        result = run()
    return counter.get_total_flops(), result


def main():
    wrong = 0
    for name in UNGROUPED:
        torch.manual_seed(1)
        model, loss, inputs, _ = networks.NETWORKS[name]()
        forward, out = counted(lambda: model(*inputs))
        backward, _ = counted(lambda: loss(out).backward())
        launches = as_gpu.convert(HERE.parent / "streams" / f"{name}.jsonl.xz").launches
        ours = [
            sum(2 * launch.work.multiply_adds for launch in launches if launch.phase in phases)
            for phases in (("forward", "loss"), ("backward", ))
        ]
        if ours != [forward, backward]:
            wrong += 1
            print(f"{name}: oracle {ours}, FlopCounterMode {[forward, backward]}")
    print(f"{len(UNGROUPED) - wrong} passed, {wrong} failed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
