"""FLOP of the trainer's GPT, worked out from its sizes alone.

As theory.py: from the mathematics of each operation, a fused multiply-add counted as two. A
product of [m, k] with [k, n] is 2 m k n, and its two gradients are as large; sums start at what
they are added to. A row that a warp works on has 32 lanes: a sum over the warp is five additions of
each, and what every lane works out again for the row counts 32 times."""

LANES = 32
WARP_SUM = 5 * LANES


def step_launches(shapes):
    """One training step of one worker: a list of (phase, layer, kernel, FLOP of the launch). The
    layer is a path below the phase's range, such as block0/attention."""
    micro_batch = _MicroBatch(shapes)
    launches = shapes["micro_batches"] * micro_batch.launches()
    return launches + [("optimizer", "", "adamw_advance", 5),
                       ("optimizer", "", "adamw", 14 * shapes["parameters"])]


class _MicroBatch:

    def __init__(self, shapes):
        self.layers = range(shapes["layers"])
        self.checkpoint = shapes["checkpoint"]
        self.width, self.hidden = shapes["width"], shapes["hidden"]
        self.batch, self.context = shapes["batch"], shapes["context"]
        self.vocabulary = shapes["vocabulary"]
        self.tokens = self.batch * self.context
        self.values = self.tokens * self.width
        self.squares = self.batch * shapes["heads"]  # matrices of scores
        self.head_width = self.width // shapes["heads"]

    def launches(self):
        found = [("forward", "embedding", k, f) for k, f in self.embedding()]
        for layer in self.layers:
            found += self.block("forward", f"block{layer}")
        found += [("forward", "norm", "layer_norm", self.layer_norm()),
                  ("forward", "head", "product_nt", self.linear(self.width, self.vocabulary))]
        found += self.loss()
        found += [("backward", "head", k, f)
                  for k, f in self.linear_gradients(self.width, self.vocabulary)]
        found += [("backward", "norm", k, f) for k, f in self.layer_norm_gradients()]
        for layer in reversed(self.layers):
            name = f"block{layer}"
            if self.checkpoint:
                found += self.block("recompute", name)
            found += self.block_gradients(name)
        return found + [("backward", "embedding", k, f) for k, f in self.embedding_gradients()]

    def block(self, phase, name):
        residual = ("add", self.values)
        attention = [("layer_norm", self.layer_norm()),
                     ("product_nt", self.linear(self.width, 3 * self.width)),
                     *self.attention(),
                     ("product_nt", self.linear(self.width, self.width)), residual]
        mlp = [("layer_norm", self.layer_norm()),
               ("product_nt", self.linear(self.width, self.hidden)),
               ("gelu", 7 * self.tokens * self.hidden),
               ("product_nt", self.linear(self.hidden, self.width)), residual]
        return ([(phase, f"{name}/attention", k, f) for k, f in attention] +
                [(phase, f"{name}/mlp", k, f) for k, f in mlp])

    def block_gradients(self, name):
        residual = ("add", self.values)
        mlp = [*self.linear_gradients(self.hidden, self.width),
               ("gelu_backward", 15 * self.tokens * self.hidden),
               *self.linear_gradients(self.width, self.hidden),
               *self.layer_norm_gradients(), residual]
        attention = [*self.linear_gradients(self.width, self.width),
                     *self.attention_gradients(),
                     *self.linear_gradients(self.width, 3 * self.width),
                     *self.layer_norm_gradients(), residual]
        return ([("backward", f"{name}/mlp", k, f) for k, f in mlp] +
                [("backward", f"{name}/attention", k, f) for k, f in attention])

    def linear(self, inputs, outputs):
        return 2 * self.tokens * inputs * outputs

    def linear_gradients(self, inputs, outputs):
        product = self.linear(inputs, outputs)
        return [("product_tn_add", product), ("product_nn", product)]

    def attention_product(self):
        """Queries by keys, or probabilities by values."""
        return 2 * self.squares * self.context**2 * self.head_width

    def attention(self):
        product = self.attention_product()
        # Twice a multiply-add for the exponent; the sum of exponentials, their scaling; the
        # largest score is scaled in each lane.
        row = 2 * 2 * self.context + 2 * self.context + WARP_SUM + LANES
        return [("product_nt", product), ("causal_softmax", self.squares * self.context * row),
                ("product_nn", product)]

    def attention_gradients(self):
        product = self.attention_product()
        # dot product; then difference, product, scale
        row = 2 * self.context + WARP_SUM + 3 * self.context
        softmax = ("causal_softmax_backward", self.squares * self.context * row)
        return [("product_tn", product), ("product_nt", product), softmax,
                ("product_tn", product), ("product_nn", product)]

    def layer_norm(self):
        # The sum; differences and the sum of their squares; difference, scale, multiply-add. Mean
        # (a product) and variance (a multiply-add) in each lane.
        row = self.width * (1 + 1 + 2 + 1 + 1 + 2) + 2 * WARP_SUM + LANES * (1 + 2)
        return self.tokens * row

    def layer_norm_gradients(self):
        # Difference, scale, gradient by weight, sum, multiply-add; the first three again,
        # difference, multiply-add, scale. Both means in each lane.
        row = self.width * (3 + 1 + 2 + 3 + 1 + 2 + 1) + 2 * WARP_SUM + 2 * LANES
        # difference, scale, multiply-add, sum
        return [("layer_norm_backward", self.tokens * row),
                ("layer_norm_weight_gradient", self.values * (1 + 1 + 2 + 1))]

    def embedding(self):
        return [("embedding", 0), ("embedding", 0), ("add", self.values)]

    def embedding_gradients(self):
        """One addition for each value that is added up: over the batch, then into each table."""
        return [("sum_leading", self.values), ("embedding_backward", self.context * self.width),
                ("embedding_backward", self.values)]

    def loss(self):
        classes = self.vocabulary
        # Difference, factor of the exponential, sum; the logarithm's multiply-add in each lane;
        # difference.
        softmax = self.tokens * (3 * classes + WARP_SUM + 2 * LANES + classes)
        # The sum, then the factor of the exponential and a multiply-add.
        gradient = self.tokens * (classes + WARP_SUM + classes + 2 * classes)
        return [("loss", "", "log_softmax", softmax),
                ("loss", "", "nll_loss", self.tokens + LANES + 2),
                ("backward", "", "nll_loss_backward", 0),
                ("backward", "", "log_softmax_backward", gradient)]
