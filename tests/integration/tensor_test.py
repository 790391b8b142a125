"""Products of tensor cores, from each instruction to its row in the report: every group of tensor
counters that instructions of PTX reach carries what theory says."""

from collections import Counter

import harness
from harness import CLIENTS, SOURCE

PTX = SOURCE / "tests/unit/simgpu/ptx/hopper.ptx"
LAUNCHES = 100
# Of one launch: precision and FLOP. A product of a warp is 16 x 8 x k, of a group 64 x n x k.
WARP = {
    "mma_f16": ("tensor_fp16", 2 * 16 * 8 * 16),
    "mma_f16_f16": ("tensor_fp16", 2 * 16 * 8 * 16),
    "mma_bf16": ("tensor_bf16", 2 * 16 * 8 * 16),
    "mma_tf32": ("tensor_tf32", 2 * 16 * 8 * 8),
    "mma_f64": ("tensor_fp64", 2 * 8 * 8 * 4),
    "mma_s8": ("tensor_int8", 2 * 16 * 8 * 32),
    "sparse_s8_k64": ("tensor_int8_sparse", 2 * 16 * 8 * 64 // 2),
    "sparse_f16_k32": ("tensor_fp16", 2 * 16 * 8 * 32 // 2),
}
GROUP = {
    "wgmma_f16": ("tensor_fp16", 2 * 64 * 64 * 16),
    "wgmma_bf16": ("tensor_bf16", 2 * 64 * 16 * 16),
    "wgmma_tf32": ("tensor_tf32", 2 * 64 * 16 * 8),
    "wgmma_e4m3": ("tensor_fp8", 2 * 64 * 16 * 32),
    "wgmma_s8": ("tensor_int8", 2 * 64 * 16 * 32),
}
FP8 = 2 * 16 * 8 * 32


class Tensor(harness.TestCase):
    def assert_theory(self, chip, kernels):
        self.run_profiled([CLIENTS / "tensor_client", PTX, LAUNCHES, *kernels], SIMGPU_CHIP=chip)
        report = harness.reduce(self.trace)
        self.assert_all_counted(report, LAUNCHES * len(kernels))
        self.assertEqual({kernel["kernel"] for kernel in report["kernels"]}, set(kernels))
        theory = Counter()
        for precision, flop in kernels.values():
            theory[precision] += LAUNCHES * flop
        got = harness.precisions(report)
        got.update({row["source"]: row["op"] for row in report["integer_operations"]})
        self.assertEqual(got, dict(theory))

    def test_products_of_warps_and_of_groups(self):
        """On GH100 each product of fp8 of a warp is two of fp16."""
        self.assert_theory("GH100", {**WARP, **GROUP, "mma_e4m3": ("tensor_fp16", FP8)})

    def test_a_large_product_has_its_tensor_flop_and_a_bound_of_the_others(self):
        """384 threads of 168 registers have no room for instrumented code, and no launch fails."""
        self.run_profiled([CLIENTS / "tensor_client", PTX, LAUNCHES, "wgmma_large"],
                          SIMGPU_FAULT="instrumented_registers=64")
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        self.assertEqual(report["ledger"][-1]["unmeasured"], 0)
        tensor = LAUNCHES * 3 * 2 * 64 * 64 * 16
        others = LAUNCHES * 384 * 96  # a product of each number that a thread holds
        figures = report["figures"]
        self.assertEqual(figures["bounded_launches"], LAUNCHES)
        self.assertEqual(figures["flop_at_most"] - figures["flop_doubtful"], tensor)
        self.assertGreaterEqual(figures["flop_doubtful"], others)
        self.assertEqual(harness.precisions(report)["tensor_fp16"], tensor)

    def test_products_of_warps(self):
        self.assert_theory("GA100", WARP)

    def test_products_of_warps_on_blackwell(self):
        """Its counter of int8 holds sparse products too."""
        int8 = {"sparse_s8_k64": ("tensor_int8", WARP["sparse_s8_k64"][1])}
        self.assert_theory("GB100", {**WARP, **int8, "mma_e4m3": ("tensor_fp16", FP8)})

    def test_products_of_fp8_of_a_warp(self):
        self.assert_theory("AD102", {**WARP, "mma_e4m3": ("tensor_fp8", FP8)})


if __name__ == "__main__":
    harness.main()
