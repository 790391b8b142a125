"""CUPTI refuses one group of counters, as where a part of a GPU lacks one of them: FLOP are the
same, a bound that holds, or unmeasured with a reason, and never less without a word."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from theory import Expected  # noqa: E402

GPT = (harness.TRAINER, "--model", "gpt", "--print-shapes", "--batch", 1, "--layers", 1,
       "--context", 32, "--vocabulary", 32, "--steps", 24)
PRODUCTS = ("product_nt", "product_nn", "product_tn", "product_tn_add")


class Training(harness.TestCase):
    def train(self, fault, *arguments):
        done = self.run_profiled((*GPT, *arguments), FLOPINJ_FORCE=1, SIMGPU_FAULT=fault)
        self.expected = Expected(json.loads(done.stdout))
        self.report = harness.reduce(self.trace)
        self.figures = self.report["figures"]
        self.assert_balanced(self.report)
        self.products = sum(self.expected.kernel_flop[name] for name in PRODUCTS)

    def assert_exact(self):
        self.assert_all_counted(self.report, self.expected.launches)
        self.assertEqual(self.figures["unscreened_launches"], 0)
        self.assertEqual(self.figures["flop"], self.expected.flop)
        self.assertEqual(harness.precisions(self.report),
                         {"tensor_bf16": self.products,
                          "fp32": self.expected.flop - self.products})

    def assert_products_lack(self):
        self.assertEqual(self.report["ledger"][-1]["unmeasured"],
                         sum(self.expected.kernel_launches[name] for name in PRODUCTS))
        self.assertIsNone(self.figures["flop"])
        self.assertEqual(self.figures["flop_at_least"], self.expected.flop - self.products)


class Refused(Training):
    def train(self, metric, fault="one_group_refused"):
        """With the group refused that has a metric with this in its name."""
        super().train(f"{fault}={metric}")

    def test_the_one_that_says_which_kernels_need_others(self):
        for fault in ("one_group_refused", "start_refused"):  # as it is configured, as it opens
            with self.subTest(fault):
                self.train("dram__bytes", fault)
                self.assertIn("counters.failed", harness.codes(self.report))
                self.assert_exact()

    def test_those_that_no_kernel_needs(self):
        for metric in ("op_hgmma_src_tf32", "op_imma_src_int8_sparsity_off",
                       "op_imma_src_int8_sparsity_on", "pipe_fma"):
            with self.subTest(metric):
                self.train(metric)
                self.assert_exact()

    def test_those_of_products(self):
        """Of which source a product is screening does not say: it needs all of these."""
        for metric in ("op_hmma_src_bf16", "op_hmma_src_fp16_dst_fp32", "op_hmma_src_tf32",
                       "op_hmma_src_fp16_dst_fp16"):
            with self.subTest(metric):
                self.train(metric)
                self.assert_products_lack()

    def test_the_one_of_instructions(self):
        self.train("op_ffma_pred_on")
        self.assertEqual(self.figures["bounded_launches"], self.expected.launches)
        self.assertIsNone(self.figures["flop"])
        self.assertGreaterEqual(self.figures["flop_at_most"], self.expected.flop)
        self.assertEqual(harness.precisions(self.report)["tensor_bf16"], self.products)


class Slices(Training):
    """A slice of a GPU (MIG) lacks counters. CUPTI says which, if it is asked; if not, it takes a
    configuration with them for a good one, and refuses it when a window opens."""

    def test_without_dram(self):
        """All is read but the bytes."""
        self.train("slice_lacks=dram__bytes")
        self.assertEqual(harness.codes(self.report), ["counters.lacking"])
        self.assert_exact()

    def test_without_the_counter_of_a_format(self):
        for metric in ("op_hmma_src_bf16", "op_hmma_src_tf32"):
            with self.subTest(metric):
                self.train(f"slice_lacks={metric}")
                self.assert_products_lack()
                reasons = harness.reasons(self.report, "unmeasured")
                self.assertEqual([reason.split(":")[0] for reason in reasons], ["unavailable"])

    def test_that_was_busy_when_it_was_asked(self):
        """As without an answer: what is refused when a window opens is left out then."""
        self.train("slice_lacks=dram__bytes,hardware_busy_for=300", "--sleep-ms", 150)
        self.assertNotIn("counters.lacking", harness.codes(self.report))
        self.assertIn("counters.busy", harness.codes(self.report))
        self.assertIn("counters.failed", harness.codes(self.report))
        self.assert_exact()


if __name__ == "__main__":
    harness.main()
