#!/usr/bin/env python3
"""PyTorch's profiler beside a client that shares CUPTI: which of the two gets its kernel records?

`beside_torch.py alone|shared_first|shared_second`: who subscribes first. Prints observations as the
probes do; exit code 77 where its requirements are missing."""

import sys

import subscriber
from probe_output import say

LAUNCHES = 100  # under the profiler, and as many before and after it


def main(order):
    try:
        import torch
        from torch.profiler import ProfilerActivity, profile
    except ImportError:
        sys.exit(77)
    if not torch.cuda.is_available():
        sys.exit(77)
    cupti = subscriber.loaded_cupti(torch.version.cuda.split(".")[0])
    if cupti is None:
        sys.exit(77)
    number = torch.zeros(1, device="cuda")
    client = subscriber.Subscriber(cupti)

    def launch():
        for _ in range(LAUNCHES):
            number.add_(1)
        torch.cuda.synchronize()

    def begin():
        for call, answer in client.begin().items():
            say(f"{order}: {call}", answer)
    say(f"{order}: PyTorch, CUPTI", f"{torch.__version__}, {subscriber.version(cupti)}")
    if order == "shared_first":
        begin()
    launch()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        if order == "shared_second":
            begin()
        launch()
    kernels = sum(event.device_type == torch.autograd.DeviceType.CUDA
                  for event in profiler.events())
    say(f"{order}: kernels of {LAUNCHES} that torch.profiler has", kernels)
    if order != "alone":
        say(f"{order}: records of the sharing client so far", client.count())
    launch()
    if order != "alone":
        say(f"{order}: after {LAUNCHES} launches more", client.count())
        client.end()
    say(f"{order}: the sum is right", number.item() == 3 * LAUNCHES)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("alone", "shared_first", "shared_second"):
        sys.exit(__doc__.splitlines()[2])
    main(sys.argv[1])
