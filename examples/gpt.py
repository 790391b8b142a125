"""A small GPT, with and without activation checkpointing: HFU counts what is computed twice, MFU
does not.

    flopinj run -o gpt.pb -- python examples/gpt.py
    flopinj run -o gpt-checkpoint.pb -- python examples/gpt.py --checkpoint
    flopinj compare gpt.pb gpt-checkpoint.pb
"""

import argparse

import closing
import flopinj
import flopinj.torch
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.checkpoint = options.checkpoint
        self.tokens = nn.Embedding(options.vocabulary, options.width)
        self.places = nn.Embedding(options.length, options.width)
        self.blocks = nn.ModuleList(
            Block(options.width, options.heads) for _ in range(options.layers))
        self.norm = nn.LayerNorm(options.width)
        self.head = nn.Linear(options.width, options.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoint else block(x)
        return self.head(self.norm(x))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("layers", 12), ("width", 768), ("heads", 12), ("length", 1024),
                        ("vocabulary", 50304), ("batch", 8), ("steps", 100)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--checkpoint", action="store_true",
                        help="compute each block's forward pass again in backward")
    return parser.parse_args()


def main():
    options = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = GPT(options).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    flopinj.torch.annotate(model, steps=20)
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    for step in range(options.steps):
        tokens = torch.randint(options.vocabulary, (options.batch, options.length + 1),
                               device=device)
        with flopinj.step():
            with torch.autocast(device, kind, enabled=device == "cuda"):
                logits = model(tokens[:, :-1])
                loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.4f} after {options.steps} steps on {device}")
    closing.say_next()


if __name__ == "__main__":
    main()
