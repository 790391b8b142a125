"""Several processes that train one network with DistributedDataParallel: one trace for each rank,
read together. Rank 0 reads the counters; the others count and time.

    flopinj run -o 'ddp-%r.pb' -- torchrun --nproc-per-node 2 examples/ddp.py
    flopinj report --sections total,ranks ddp-*.pb
"""

import argparse
import os

import closing
import flopinj
import flopinj.torch
import torch
from torch import distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=256, help="of each process")
    parser.add_argument("--steps", type=int, default=50)
    return parser.parse_args()


def main():
    options = arguments()
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    rank = distributed.get_rank()
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(784, options.width), nn.ReLU(),
                            nn.Linear(options.width, options.width), nn.ReLU(),
                            nn.Linear(options.width, 10)).to(device)
    model = DistributedDataParallel(network, device_ids=[device.index] if on_gpu else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    flopinj.torch.annotate(model, steps=20)
    torch.manual_seed(rank)
    for _ in range(options.steps):
        images = torch.randn(options.batch, 784, device=device)
        labels = torch.randint(10, (options.batch,), device=device)
        with flopinj.step(images=options.batch):
            loss = functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    weights = sum(weight.double().sum() for weight in network.parameters())
    every = [torch.zeros_like(weights) for _ in range(distributed.get_world_size())]
    distributed.all_gather(every, weights)
    distributed.destroy_process_group()
    if rank == 0:
        assert all(torch.equal(one, weights) for one in every), "the ranks differ"
        print(f"{len(every)} ranks agree after {options.steps} steps on {device.type}")
        closing.say_next("torchrun --nproc-per-node 2")


if __name__ == "__main__":
    main()
