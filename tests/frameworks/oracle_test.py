#!/usr/bin/env python3
"""The oracle itself: the products of loops' lengths that it uses for large calls against
counting one by one, and its counts against multiplying out small cases number by number; the
steps that make a GPU's stream of a CPU's."""

import itertools
import sys
import unittest

sys.dont_write_bytecode = True

import as_gpu  # noqa: E402
import oracle  # noqa: E402
from oracle import Work  # noqa: E402

EVERYTHING = 10**9  # loops up to which a call is counted one by one


def convolve(x, weight, stride, padding, dilation, groups):
    """Multiply-adds and output size of a convolution of two dimensions, written down from its
    definition; taps on the padding too."""
    (batch, channels, height, width), (filters, per_group, kernel_h, kernel_w) = x, weight
    assert channels == per_group * groups
    rows = range(-padding, height + padding - dilation * (kernel_h - 1), stride)
    columns = range(-padding, width + padding - dilation * (kernel_w - 1), stride)
    macs = 0
    for _ in itertools.product(range(batch), range(filters), rows, columns):
        for _ in itertools.product(range(per_group), range(kernel_h), range(kernel_w)):
            macs += 1
    return macs, [batch, filters, len(rows), len(columns)]


class Loops(unittest.TestCase):
    def test_closed_loops_count_as_many_as_one_by_one(self):
        for lengths in [(3, ), (2, 5), (3, 4, 5), (2, 3, 1, 7), (1, 1, 1), (4, 0, 3),
                        (2, 2, 2, 2, 2, 3)]:
            with self.subTest(lengths=lengths):
                self.assertEqual(oracle.count(*lengths, loops=0),
                                 oracle.count(*lengths, loops=EVERYTHING))

    def test_convolutions(self):
        for stride, padding, dilation, groups in itertools.product((1, 2, 3), (0, 1), (1, 2),
                                                                   (1, 2, 4)):
            x, weight = [2, 4, 7, 6], [8, 4 // groups, 3, 2]
            macs, out = convolve(x, weight, stride, padding, dilation, groups)
            for loops in (0, EVERYTHING):
                self.assertEqual(oracle.convolution({"transposed": False}, x, weight, out, loops),
                                 macs)
            # A transposed one is the same product, its operands' roles exchanged: what goes in
            # there comes out here.
            transposed = oracle.convolution({"transposed": True}, out, [8, 4 // groups, 3, 2], x)
            self.assertEqual(transposed, macs)

    def test_products(self):
        def multiply(a, b):
            return sum(1 for _ in itertools.product(range(a[0]), range(b[1]), range(a[1])))

        self.assertEqual(oracle.matrix([3, 4], [4, 5]), multiply([3, 4], [4, 5]))
        self.assertEqual(oracle.batched([2, 3, 4], [2, 4, 5]), 2 * multiply([3, 4], [4, 5]))

    def test_attention(self):
        q, k, v = [2, 3, 5, 8], [2, 3, 7, 8], [2, 3, 7, 6]
        forward, = oracle.of_operator("aten::_scaled_dot_product_flash_attention_for_cpu",
                                      [q, k, v], {"out": [[2, 3, 5, 6], [2, 3, 5]]})
        scores, values = 2 * 3 * 5 * 7 * 8, 2 * 3 * 5 * 7 * 6
        self.assertEqual(forward.multiply_adds, scores + values)
        back, = oracle.of_operator("aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                                   [[2, 3, 5, 6], q, k, v], {"out": [q, k, v]})
        self.assertEqual((back.multiply_adds, back.again), (3 * scores + 2 * values, scores))

    def test_recurrent_layer(self):
        steps, batch, inputs, state = 5, 2, 3, 4
        macs = sum(
            1
            for _ in itertools.product(range(steps), range(batch), range(4 * state), range(inputs)))
        macs += sum(
            1
            for _ in itertools.product(range(steps), range(batch), range(4 * state), range(state)))
        self.assertEqual(
            oracle.recurrent([[steps, batch, inputs], [4 * state, inputs], [4 * state, state]]),
            macs)

    def test_gradients_of_a_convolution_are_those_that_its_mask_names(self):
        sizes = [[2, 8, 4, 4], [2, 4, 4, 4], [8, 4, 3, 3]]
        for mask in itertools.product((False, True), repeat=3):
            works = oracle.of_operator(
                "aten::convolution_backward", sizes,
                {"out": [None] * 3, "args": {"transposed": False, "output_mask": mask}})
            macs = 2 * 8 * 4 * 4 * 4 * 3 * 3
            self.assertEqual([w.multiply_adds for w in works],
                             [macs] * mask[0] + [macs] * mask[1] + [0] * mask[2])
            self.assertEqual([w.additions for w in works][2:] if mask[:2] == (True, True) else [],
                             [2 * 8 * 4 * 4] * mask[2] if mask[:2] == (True, True) else [])


def operator(name, sizes, out, *, seq=None, args=None, thread=1):
    number = "" if seq is None else f", seq = {seq}"
    return [
        "+", thread, f"{name}{number}, op_id = 1, sizes = {sizes}",
        {"out": out, "type": "float"} | ({"args": args} if args else {})
    ]


END = ["-", 1]


class AsGpu(unittest.TestCase):
    def lines(self, events):
        return [
            line for line in as_gpu.Gpu({}, events).lines
            if line.split("\t")[0] in ("push", "pop", "run")
        ]

    def test_a_convolution_becomes_the_library_s_with_its_bias_added(self):
        args = {"transposed": False, "groups": 1}
        events = [
            operator("aten::_convolution", [[1, 2, 4, 4], [3, 2, 3, 3], [3], []], [[1, 3, 2, 2]],
                     args=args),
            operator("aten::mkldnn_convolution", [[1, 2, 4, 4], [3, 2, 3, 3], [3]], [[1, 3, 2, 2]]),
            END, END
        ]
        lines = self.lines(events)
        self.assertIn(
            "push\t1\t-\taten::cudnn_convolution, sizes = "
            "[[1, 2, 4, 4], [3, 2, 3, 3], [], [], [], [], [], [], []]",
            lines)
        self.assertIn("push\t1\t-\taten::add_, sizes = [[1, 3, 2, 2], [1, 3, 1, 1], []]", lines)
        launches = as_gpu.Gpu({}, events).launches
        self.assertEqual([launch.work for launch in launches],
                         [Work("convolution", 1 * 3 * 2 * 2 * 2 * 3 * 3),
                          Work("add_bias", 0, 12)])

    def test_backward_is_a_thread_of_its_own_with_numbers_of_its_own(self):
        """Two nodes of the main thread; a checkpoint computes one of them again, with the engine
        running. What backward differentiates is part of the loss, noted or not."""
        events = [["+", 1, "user's range"],
                  operator("aten::mm", [[2, 3], [3, 4]], [[2, 4]], seq=7), END,
                  operator("aten::mm", [[2, 4], [4, 5]], [[2, 5]],
                           seq=8), END, ["!", 1, "engine 9"], ["!", 1, "phase backward"],
                  ["+", 1, "autograd::engine::evaluate_function: CheckpointFunctionBackward"],
                  ["+", 1, "CheckpointFunctionBackward, seq = 8"], ["!", 1, "phase recompute"],
                  operator("aten::mm", [[2, 4], [4, 5]], [[2, 5]], seq=9), END,
                  ["!", 1, "phase end"], END, END, ["!", 1, "phase end"], ["!", 1, "engine end 10"],
                  operator("aten::mm", [[2, 3], [3, 4]], [[2, 4]], seq=10), END, END]
        pushes = [line.split("\t")[1:] for line in self.lines(events) if line.startswith("push")]
        shown = [(thread, name.split(", sizes")[0].replace(", op_id = 1", ""))
                 for thread, _, name in pushes]
        self.assertEqual(shown,
                         [("1", "user's range"), ("1", "aten::mm, seq = 7"),
                          ("1", "aten::mm, seq = 8"),
                          ("2", "autograd::engine::evaluate_function: CheckpointFunctionBackward"),
                          ("2", "CheckpointFunctionBackward, seq = 8"), ("2", "aten::mm, seq = 0"),
                          ("1", "aten::mm, seq = 9")])
        self.assertEqual([launch.phase for launch in as_gpu.Gpu({}, events).launches],
                         ["other", "loss", "recompute", "other"])

    def test_backward_belongs_to_the_operator_that_showed_the_number_last(self):
        """A batch norm counts its batches first: that addition shows the same number and makes
        no node."""
        events = [["!", 1, "phase forward"],
                  operator("aten::add_", [[], []], [[]], seq=3), END,
                  operator("aten::linear", [[2, 3], [4, 3], []], [[2, 4]], seq=3),
                  operator("aten::mm", [[2, 3], [3, 4]], [[2, 4]], seq=3), END, END,
                  ["!", 1, "phase end"], ["!", 1, "engine 4"], ["!", 1, "phase backward"],
                  ["+", 1, "autograd::engine::evaluate_function: MmBackward0"],
                  ["+", 1, "MmBackward0, seq = 3"],
                  operator("aten::mm", [[3, 2], [2, 4]], [[3, 4]]), END, END,
                  operator("aten::sum", [[2, 4]], [[4]]), END, END, ["!", 1, "phase end"],
                  ["!", 1, "engine end 4"]]
        found = [(launch.work.kernel, launch.phase, launch.operator)
                 for launch in as_gpu.Gpu({}, events).launches]
        self.assertEqual(found, [("add", "forward", "aten::add_"),
                                 ("mm", "forward", "aten::linear"),
                                 ("mm", "backward", "aten::linear"),
                                 ("sum", "backward", "aten::linear")])


if __name__ == "__main__":
    unittest.main()
