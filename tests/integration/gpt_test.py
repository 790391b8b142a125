"""The whole path on the trainer's GPT, a transformer on tensor cores: every FLOP figure equals the
count worked out from its sizes, with checkpointing and micro-batches, in ranges of both kinds."""

import json

import harness
from theory import Expected

# Both products of each node have unlike sizes: no layer has as many outputs as there are tokens
# (128), and a head (32) not as many values as the context (64).
SMALL = ("--batch", 2, "--vocabulary", 32, "--steps", 14)
WAYS = ((), ("--checkpoint",), ("--accumulate", 2), ("--accumulate", 2, "--checkpoint"))
PRODUCTS = ("product_nt", "product_nn", "product_tn", "product_tn_add")


class TestCase(harness.TestCase):

    def train(self, *arguments, sizes=SMALL, **settings):
        """What theory says of the run, and what flopreduce says."""
        done = self.run_profiled([harness.TRAINER, "--model", "gpt", "--print-shapes", *sizes,
                                  *arguments], FLOPINJ_FORCE=1, **settings)
        return Expected(json.loads(done.stdout)), harness.reduce(self.trace)

    def check_total(self, expected, report):
        self.assert_all_counted(report, expected.launches)
        products = sum(expected.kernel_flop[name] for name in PRODUCTS)
        self.assertEqual(harness.precisions(report),
                         {"tensor_bf16": products, "fp32": expected.flop - products})
        kernels = {k["kernel"]: (k["flop"], k["launches"]) for k in report["kernels"]}
        self.assertEqual(kernels, {name: (flop, expected.kernel_launches[name])
                                   for name, flop in expected.kernel_flop.items()})

    def check_phases(self, expected, report):
        phases = {row["phase"]: (row["flop"], row["launches"]) for row in report["phases"]}
        self.assertEqual(phases, {name: (flop, expected.phase_launches[name])
                                  for name, flop in expected.phase_flop.items()})
        self.assertAlmostEqual(report["figures"]["ratio"],
                               expected.phase_flop["backward"] / expected.phase_flop["forward"],
                               places=12)

    def check_recompute(self, expected, report):
        """The forward pass of all blocks once more."""
        blocks = sum(flop for (phase, layer), flop in expected.layer_flop.items()
                     if phase == "forward" and layer.startswith("block"))
        phases = harness.by(report, "phases")
        again = phases["recompute"]["flop"] if "recompute" in phases else 0
        self.assertEqual(again, blocks if expected.phase_flop["recompute"] else 0)


class EveryFigureEqualsTheory(TestCase):

    def check_layers(self, expected, report):
        ranges = harness.by(report, "ranges")
        for (phase, layer), flop in expected.layer_flop.items():
            if not layer:
                continue
            if phase == "recompute":
                block, part = layer.split("/")
                path = f"step/backward/layer:{block}/recompute/{part}"
            else:
                path = f"step/{phase}/layer:{layer}"
            self.assertEqual(ranges[path]["flop"], flop, path)

    def test_checkpointing_and_micro_batches(self):
        for way in WAYS:
            with self.subTest(way=way):
                expected, report = self.train(*way)
                self.check_total(expected, report)
                self.check_phases(expected, report)
                self.check_recompute(expected, report)
                self.check_layers(expected, report)

    def test_other_modes(self):
        for mode in (("graph", "--warm-up", 14), ("streams", "--workers", 2)):
            with self.subTest(mode=mode):
                expected, report = self.train("--checkpoint", "--mode", *mode)
                self.check_total(expected, report)
                self.check_phases(expected, report)
                self.check_layers(expected, report)

    def test_on_another_thread_what_runs_again_is_backward(self):
        """Without a range, only the thread's name says what it does."""
        expected, report = self.train("--checkpoint", "--mode", "autograd-thread")
        self.check_total(expected, report)
        phases = {row["phase"]: row["flop"] for row in report["phases"]}
        self.assertEqual(phases["backward"],
                         expected.phase_flop["backward"] + expected.phase_flop["recompute"])

    def test_on_a_small_chip(self):
        """Which has the counters of GH100, and a peak of its own."""
        expected, report = self.train(SIMGPU_CHIP="SG4")
        self.check_total(expected, report)
        device, row = report["devices"][0], report["peak_devices"][0]["row"]
        self.assertEqual((device["device"], device["chip"], row),
                         ("simgpu SG4 (simulated)", "GH100", "simgpu SG4 (simulated)"))


class OperatorsOfPyTorch(TestCase):
    """Ranges as emit_nvtx pushes them."""

    def check_operators(self, expected, report):
        """Formulas of matrix products equal theory, and what was executed."""
        of_products = {}
        for row in report["operators"]:
            name = row["operator"]
            if name in ("aten::linear", "aten::matmul", "aten::mm", "aten::bmm"):
                self.assertTrue(row["calls_counted"], name)
                self.assertEqual(row["formula_flop"], row["flop"], (name, row["phase"]))
                of_products[row["phase"]] = of_products.get(row["phase"], 0) + row["flop"]
            if name in ("aten::add", "aten::add_", "aten::sum", "aten::embedding_dense_backward"):
                self.assertEqual(row["formula_flop"], row["flop"], (name, row["phase"]))
        products = {}
        for (phase, kernel), flop in expected.phase_kernel_flop.items():
            if kernel in PRODUCTS:
                products[phase] = products.get(phase, 0) + flop
        self.assertEqual(of_products, products)

    def check_ratios(self, report):
        """Each product has two gradients, of its work each."""
        work = harness.by(report, "operator_work")
        for name in ("aten::linear", "aten::matmul"):
            row = work[name]
            self.assertEqual((row["matrix_ratio"], row["expected_ratio"]), (2, 2), name)
        ratio = harness.by(report, "ratio")
        self.assertEqual(ratio["expected of matrix work, least"]["value"], 2)
        self.assertEqual(ratio["matrix work only"]["verdict"], "inside")

    def check_layers(self, expected, report):
        """Backward's ranges name no layer: sequence numbers say which it is."""
        layers = {(row["layer"], row["pass"]): row for row in report["layer_passes"]}
        for (phase, layer), flop in expected.layer_flop.items():
            if layer and phase != "recompute":
                row = layers[f"layer:{layer}", phase]
                self.assertEqual((row["flop"], row["launches"]),
                                 (flop, expected.layer_launches[phase, layer]), (phase, layer))
        found = {row["found"]: row["launches"] for row in report["sequence_numbers"]
                 if row["launches"]}
        self.assertEqual(found, {"forward_operator": expected.phase_launches["backward"]})

    def check_methods(self, expected, report):
        """The model needs no pass that runs again, and no optimizer."""
        methods = harness.by(report, "utilization", "name")
        self.assertEqual(methods["formula"]["flop"], sum(
            harness.exact(row, "model_flop") or 0 for row in report["operators"]
            if row["phase"] in ("forward", "loss", "backward")))
        self.assertEqual(methods["executed"]["flop"], expected.flop)
        self.assertEqual(report["figures"]["recompute_flop"], expected.phase_flop["recompute"])

    def test_formulas_phases_and_layers_equal_theory(self):
        for way in (*WAYS, ("--checkpoint", "--mode", "autograd-thread")):
            with self.subTest(way=way):
                expected, report = self.train("--ranges", "pytorch", *way)
                self.check_total(expected, report)
                self.check_phases(expected, report)
                self.check_recompute(expected, report)
                self.check_operators(expected, report)
                self.check_ratios(report)
                self.check_layers(expected, report)
                self.check_methods(expected, report)

    def test_both_products_of_a_node_may_have_equal_sizes(self):
        """64 tokens, outputs of the projection and values of the head: two ranges of one name and
        number are two calls."""
        expected, report = self.train("--ranges", "pytorch", sizes=(
            "--batch", 1, "--heads", 1, "--vocabulary", 32, "--steps", 14))
        self.check_total(expected, report)
        self.check_operators(expected, report)


if __name__ == "__main__":
    harness.main()
