"""Launches of every kind, each with FLOP that follow from its size: axpy(n) is 2n, dot(k) is 2k."""

import unittest

import harness
from harness import CLIENTS


class Launches(harness.TestCase):
    def report_of(self, case, **settings):
        self.run_profiled([CLIENTS / "launch_client", case], **settings)
        return harness.reduce(self.trace)

    def kernels_of(self, report):
        return {k["kernel"]: (k["launches"], k["flop"]) for k in report["kernels"]}

    def test_same_grid_another_k_is_never_merged(self):
        report = self.report_of("same_grid")
        self.assert_all_counted(report, 60)
        self.assertEqual(self.kernels_of(report), {"dot": (60, 20 * 2 * (1 + 17 + 1000))})
        self.assertEqual(report["kernels"][0]["signatures"], 3)
        self.assertEqual(report["kernels"][0]["varying_launches"], 0)
        self.assertEqual(
            sorted((int(s["flop_per_launch"]), s["launches"]) for s in report["signatures"]),
            [(2, 20), (34, 20), (2000, 20)])

    def test_failed_launches_are_not_launches(self):
        report = self.report_of("failed")
        self.assert_all_counted(report, 10)
        self.assertEqual(self.kernels_of(report), {"axpy": (10, 10 * 200)})

    def test_module_reload(self):
        report = self.report_of("reload")
        self.assert_all_counted(report, 50)
        self.assertEqual(self.kernels_of(report), {"axpy": (25, 25 * 128), "dot": (25, 25 * 20)})

    def test_threads_on_one_context(self):
        report = self.report_of("threads")
        self.assert_all_counted(report, 4000)
        ranges = {r["range"]: (r["launches"], r["flop"]) for r in report["ranges"]}
        self.assertEqual(
            ranges, {f"thread {c}": (500, 500 * 2 * (100 + i))
                     for i, c in enumerate("abcdefgh")})

    def test_every_entry_point(self):
        report = self.report_of("entry_points")
        self.assert_all_counted(report, 30)
        self.assertEqual(self.kernels_of(report), {"axpy": (30, 30 * 100)})

    def test_a_record_that_comes_twice_is_removed_and_counted(self):
        report = self.report_of("threads", SIMGPU_FAULT="repeat_activity=10")
        self.assert_all_counted(report, 4000)
        duplicates = harness.reasons(report, "duplicate")
        self.assertEqual(list(duplicates), ["activity_record"])
        self.assertGreater(duplicates["activity_record"], 0)
        self.assertLessEqual(duplicates["activity_record"], 4000 // 10)

    def test_graphs(self):
        """Captured launches are none; 3 launches of dot(5)+axpy(40), 2 after dot became dot(9), 1
        as a child graph of the original; 6 eager."""
        report = self.report_of("graphs")
        self.assert_all_counted(report, 6 + 3 * 2 + 2 * 2 + 2)
        self.assertEqual(self.kernels_of(report), {
            "dot": (4 + 6, 4 * (5 + 9) + 3 * 10 + 2 * 18 + 10), "axpy": (2 + 6, 8 * 80)})
        captured = harness.by(report, "ranges")["captured"]
        self.assertEqual(captured["launches"], 12)

    def test_varying_work_is_said_to_vary(self):
        report = self.report_of("varying")
        self.assert_all_counted(report, 40)
        signature, = report["signatures"]
        self.assertTrue(signature["varying"])
        self.assertIsNone(signature["flop_per_launch"])
        fma = harness.by(report, "samples", "metric")[
            "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"]
        # Launch i has k = 10 + i. The first are read in turn for screening and for instructions,
        # and what was seen is said, not smoothed: k = 11, 12, 15, and what a later round drew.
        self.assertGreaterEqual(fma["samples"], 3)
        self.assertEqual(fma["min"], 11)
        self.assertGreaterEqual(fma["max"], 15)
        if fma["samples"] == 3:
            self.assertEqual(fma["max"], 15)
            self.assertAlmostEqual(fma["mean"], (11 + 12 + 15) / 3, places=9)
        self.assertEqual(report["kernels"][0]["varying_launches"], 40)

    def test_precisions_stay_apart(self):
        report = self.report_of("precisions")
        self.assert_all_counted(report, 5)
        self.assertEqual(harness.precisions(report), {"fp64": 5 * 64, "fp16": 5 * 64 * 4})

    def test_tensor_work_is_counted_by_precision_with_its_padding(self):
        """16 x 16 x 16 tiles: 3*4*5 for 33x50x70, 2*1*7 for 17x16x100, 1*6*2 for 5x90x31."""
        report = self.report_of("tensor")
        self.assert_all_counted(report, 400)
        tile = 2 * 16**3
        self.assertEqual(
            harness.precisions(report), {
                "tensor_fp16": 100 * 60 * tile, "tensor_bf16": 100 * 14 * tile,
                "tensor_tf32": 100 * 12 * tile, "fp32": 100 * 2 * 64
            })
        self.assertEqual(self.kernels_of(report), {
            "product_fp16": (100, 100 * 60 * tile), "product_bf16": (100, 100 * 14 * tile),
            "product_tf32": (100, 100 * 12 * tile), "axpy": (100, 100 * 2 * 64)})
        self.assertEqual(report["figures"]["unscreened_launches"], 0)

    def test_tensor_work_that_was_not_measured_is_not_zero(self):
        """Screening shows it, and then the program is over: they need three groups and are launched
        twice."""
        report = self.report_of("tensor_briefly")
        self.assert_balanced(report)
        self.assertEqual(report["ledger"][-1]["launches"], 8)
        self.assertGreaterEqual(report["ledger"][-1]["unmeasured"], 6)
        reasons = harness.reasons(report, "unmeasured")
        self.assertTrue(all(r.startswith("not_sampled:") for r in reasons), reasons)
        flop = {name: work for name, (_, work) in self.kernels_of(report).items()}
        self.assertIn(flop.pop("axpy"), (None, 2 * 2 * 64))  # two groups: as the windows fall
        self.assertEqual(set(flop.values()), {None})

    def test_what_cupti_cannot_measure_is_not_undercounted(self):
        """A CUPTI without the bf16 metric: the kernels that need it have no count, and the others
        theirs."""
        report = self.report_of("tensor", SIMGPU_UNKNOWN_METRICS="op_hmma_src_bf16")
        self.assert_balanced(report)
        self.assertEqual(harness.reasons(report, "unmeasured"),
                         {"unavailable:tensor_bf16": 300})
        flop = {name: work for name, (_, work) in self.kernels_of(report).items()}
        self.assertEqual(flop, {"product_fp16": None, "product_bf16": None, "product_tf32": None,
                                "axpy": 100 * 2 * 64})

    def test_a_kernel_with_a_new_scalar_at_every_launch_is_counted(self):
        """40 launches, 40 fingerprints: the first ones count with the class of the rest. What was
        read in a window is known some time after it, so the launches are far enough apart."""
        for case in ("seeds", "seeds_slowly"):  # which a busy machine needs
            report = self.report_of(case, FLOPINJ_FORCE=1)
            if report["ledger"][-1]["unmeasured"] == 0:
                break
        self.assert_all_counted(report, 40)
        self.assertEqual(self.kernels_of(report), {"axpy": (40, 40 * 2 * 64)})

    def test_a_cupti_without_the_instruction_metrics(self):
        report = self.report_of("same_grid", SIMGPU_UNKNOWN_METRICS="op_ffma_pred_on",
                                FLOPINJ_LOG="error")
        self.assert_balanced(report)
        self.assertEqual(harness.reasons(report, "unmeasured"), {})
        figures = report["figures"]
        self.assertEqual(figures["bounded_launches"], 60)
        self.assertIsNone(figures["flop"])
        self.assertGreaterEqual(figures["flop_at_most"], 20 * 2 * (1 + 17 + 1000))
        self.assertEqual(figures["flop_at_most"], figures["flop_doubtful"])  # at least nothing

    def test_a_cupti_with_neither_the_instructions_nor_their_pipes(self):
        report = self.report_of("same_grid", SIMGPU_UNKNOWN_METRICS="fma",
                                FLOPINJ_LOG="error")
        self.assert_balanced(report)
        self.assertEqual(harness.reasons(report, "unmeasured"), {"unavailable:sass": 60})

    def test_collectives_are_never_measured(self):
        report = self.report_of("collective")
        self.assert_balanced(report)
        ledger = report["ledger"][-1]
        self.assertEqual((ledger["launches"], ledger["unmeasured"]), (10, 5))
        kernels = harness.by(report, "kernels")
        self.assertIsNone(kernels["ncclDevKernel_AllReduce_Sum_f32_RING_LL"]["flop"])
        self.assertEqual(kernels["axpy"]["flop"], 5 * 64)

    def test_equal_flop_and_twice_the_traffic(self):
        """(n x n)(n x 1) against outer product and row sums: 2n^2 - n FLOP each; one reads the
        matrix, the other writes it and reads it again. Utilization is against simgpu's own model,
        and simulated."""
        report = self.report_of("vectors")
        self.assert_all_counted(report, 30)
        n, repeats = 256, 10
        ranges = harness.by(report, "ranges")
        for path in ("matrix x vector", "outer product, row sum"):
            self.assertEqual(ranges[path]["flop"], repeats * (2 * n * n - n))
        roofline = harness.by(report, "roofline")
        kernels = harness.by(report, "kernels")
        traffic = {
            "matrix_vector": 4 * (n * n + 2 * n), "outer_product": 4 * (n * n + 2 * n),
            "row_sum": 4 * (n * n + n)
        }
        flop = {"matrix_vector": 2 * n * n - n, "outer_product": n * n, "row_sum": n * n - n}
        for name, bytes_moved in traffic.items():
            kernel = roofline[name]
            self.assertEqual(kernel["dram_bytes"], repeats * bytes_moved)
            self.assertAlmostEqual(kernel["flop_per_byte"], flop[name] / bytes_moved)
            self.assertEqual(kernel["nearer_roof"], "memory")
            # The model's memory: 3352 GB/s. Its launches take 1500 ns more.
            time = kernels[name]["gpu_time_ns"]
            self.assertEqual(time, repeats * int(1500 + bytes_moved / 3352))
            share = repeats * bytes_moved / 3352 / time
            self.assertAlmostEqual(harness.figure(kernel, "roof_share"), share)
            self.assertEqual(kernel["bound_by"], "memory" if share >= 0.6 else "latency")
        device, = report["peak_devices"]
        self.assertEqual(device["row"], "simgpu GH100 (simulated)")
        self.assertIn("simulated", harness.by(report, "peaks", "roof")["fp32"]["source"])
        self.assertLess(0, report["figures"]["hfu"])

    def test_two_devices(self):
        report = self.report_of("devices", SIMGPU_DEVICES=2)
        self.assert_all_counted(report, 20)
        self.assertEqual(self.kernels_of(report), {"axpy": (20, 10 * 20 + 10 * 40)})
        self.assertEqual([d["launches"] for d in report["devices"]], [10, 10])

    def test_every_device_of_many_is_measured(self):
        for count in (8, 16):
            with self.subTest(devices=count):
                report = self.report_of("devices", SIMGPU_DEVICES=count, FLOPINJ_FORCE=1)
                self.assert_all_counted(report, 10 * count)
                self.assertEqual(report["figures"]["flop"],
                                 sum(10 * 2 * 10 * (d + 1) for d in range(count)))
                self.assertEqual([d["unmeasured"] for d in report["devices"]], [0] * count)


class UnknownChip(harness.TestCase):
    """A chip that CUPTI knows and no table of ours."""

    def report(self, **settings):
        self.run_profiled([CLIENTS / "launch_client", "tensor"], SIMGPU_CHIP_NAME="GX100",
                          FLOPINJ_FORCE=1, **settings)
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        told = {row["code"]: row["message"] for row in report["diagnostics"]}
        self.assertIn("GX100", told["counters.chip_unknown"])
        return report, {k["kernel"]: k["flop"] for k in report["kernels"]}, told

    def test_its_plan_is_computed(self):
        report, kernels, _ = self.report()
        self.assert_all_counted(report, 400)
        tile = 2 * 16**3
        self.assertEqual(kernels, {"product_fp16": 100 * 60 * tile, "product_bf16": 100 * 14 * tile,
                                   "product_tf32": 100 * 12 * tile, "axpy": 100 * 2 * 64})

    def test_tensor_work_that_nothing_tells_is_not_zero(self):
        report, kernels, told = self.report(SIMGPU_UNKNOWN_METRICS="sm__ops_path_tensor")
        self.assertEqual(kernels, {"product_fp16": None, "product_bf16": None, "product_tf32": None,
                                   "axpy": 100 * 2 * 64})
        self.assertEqual(report["ledger"][-1]["unmeasured"], 300)
        self.assertIn("GX100", told["counters.chip.tensor_unknown"])

    def test_nothing_counts_where_nothing_tells_which_kernels_do_tensor_work(self):
        report, kernels, told = self.report(SIMGPU_UNKNOWN_METRICS="tensor")
        self.assertEqual(set(kernels.values()), {None})
        self.assertEqual(report["ledger"][-1]["unmeasured"], 400)
        self.assertIn("GX100", told["counters.required"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
