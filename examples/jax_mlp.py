"""A training step in JAX. XLA names what it runs by NVTX: the scopes below, inside of jvp(...) in
the forward pass and of transpose(jvp(...)) in backward. So nothing is to be annotated but steps.
The compiled step has the names of what runs in CUDA graphs and in fusions, too.

    flopinj run -o jax.pb -- python examples/jax_mlp.py
    flopinj report --names jax.names --sections total,phases,steps,ranges jax.pb
"""

import closing
import flopinj.jax
import jax
from jax import numpy as jnp


def network(weights, x):
    for number, weight in enumerate(weights):
        with jax.named_scope(f"layer{number}"):
            x = jnp.tanh(x @ weight)
    return x


def train(weights, x, y):
    def loss_of(weights):
        return jnp.mean((network(weights, x) - y)**2)

    loss, gradients = jax.value_and_grad(loss_of)(weights)
    with jax.named_scope("optimizer"):
        return loss, [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients)]


def main():
    options = closing.options(__doc__, width=4096, batch=512, steps=100)
    keys = jax.random.split(jax.random.key(0), 5)
    widths = (784, options.width, options.width, 10)
    weights = [jax.random.normal(key, shape) / shape[0]**0.5
               for key, shape in zip(keys, zip(widths, widths[1:]))]
    x = jax.random.normal(keys[3], (options.batch, widths[0]))
    y = jax.random.normal(keys[4], (options.batch, widths[-1]))
    step = jax.jit(train).lower(weights, x, y).compile()
    flopinj.jax.save_names("jax.names", step)
    for _ in range(options.steps):
        with flopinj.step(images=options.batch):
            loss, weights = step(weights, x, y)
            loss.block_until_ready()  # else the step ends before its kernels begin
    print(f"loss {loss:.4f} after {options.steps} steps on {loss.device.platform}")
    closing.say_next()


if __name__ == "__main__":
    main()
