"""Thirteen networks for images, trained on random data: executed FLOP against formulas, backward
against forward, layer by layer.

    flopinj run -o resnet18.pb -- python examples/vision.py --network resnet18 --batch 64
    flopinj report --sections ratio,layers,operators resnet18.pb
"""

import argparse

import closing
import flopinj
import flopinj.torch
import torch
import torchvision
from torch.nn import functional

NETWORKS = ("alexnet efficientnet_b0 mobilenet_v2 resnet18 resnet34 resnet50 resnet101 resnet152 "
            "vgg11 vgg13 vgg16 vgg19 wide_resnet50_2").split()
CLASSES = 10


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", choices=NETWORKS, default="resnet18")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--size", type=int, default=224, help="width and height of the images")
    parser.add_argument("--steps", type=int, default=50)
    return parser.parse_args()


def main():
    options = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = torchvision.models.get_model(options.network, num_classes=CLASSES).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    flopinj.torch.annotate(model, steps=20)
    images = torch.randn(options.batch, 3, options.size, options.size, device=device)
    labels = torch.randint(CLASSES, (options.batch,), device=device)
    for _ in range(options.steps):
        with flopinj.step(images=options.batch):
            loss = functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"{options.network}: loss {loss.item():.4f} after {options.steps} steps on {device}")
    closing.say_next()


if __name__ == "__main__":
    main()
