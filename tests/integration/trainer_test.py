"""The whole path on an existing trainer: every FLOP figure equals the count worked out from layer
shapes."""

import json
import unittest

import harness
from theory import Expected

MODES = ("plain", "autograd-thread", "graph", "streams")


def train(test, *arguments, batch=8, **settings):
    """Runs the trainer under the profiler; returns what theory says of it and what flopreduce
    says."""
    done = test.run_profiled([harness.TRAINER, "--print-shapes", "--batch", batch, *arguments],
                             **settings)
    return Expected(json.loads(done.stdout)), harness.reduce(test.trace)


class EveryFigureEqualsTheory(harness.TestCase):
    def check(self, expected, report):
        self.assert_all_counted(report, expected.launches)
        self.assertTrue(report["figures"]["simulated"])
        self.assertEqual(harness.precisions(report), {"fp32": expected.flop})
        phases = {
            name: (phase["flop"], phase["launches"])
            for name, phase in harness.by(report, "phases").items()
        }
        self.assertEqual(phases, {name: (flop, expected.phase_launches[name])
                                  for name, flop in expected.phase_flop.items()})
        kernels = {k["kernel"]: (k["flop"], k["launches"]) for k in report["kernels"]}
        self.assertEqual(kernels, {name: (flop, expected.kernel_launches[name])
                                   for name, flop in expected.kernel_flop.items()})
        ratio = expected.phase_flop["backward"] / expected.phase_flop["forward"]
        self.assertAlmostEqual(report["figures"]["ratio"], ratio, places=12)

    def check_layers(self, expected, report):
        ranges = harness.by(report, "ranges")
        for (phase, layer), flop in expected.layer_flop.items():
            if layer:
                self.assertEqual(ranges[f"step/{phase}/layer:{layer}"]["flop"], flop,
                                 (phase, layer))

    def test_every_mode_and_model(self):
        for model in ("mlp", "cnn"):
            for mode in MODES:
                with self.subTest(model=model, mode=mode):
                    expected, report = train(self, "--model", model, "--mode", mode, "--steps", 12,
                                             FLOPINJ_FORCE=1)
                    self.check(expected, report)
                    if mode != "autograd-thread":
                        self.check_layers(expected, report)

    def test_momentum_and_odd_batch(self):
        expected, report = train(self, "--model", "mlp", "--momentum", 0.9, "--steps", 12, batch=13)
        self.check(expected, report)
        self.check_layers(expected, report)

    def test_without_waiting_for_the_plan(self):
        """In production nobody waits: kernels measured later serve the launches before."""
        for steps in (100, 1_000, 10_000):  # on a busy machine the plan comes later
            expected, report = train(self, "--model", "mlp", "--steps", steps, batch=32,
                                     FLOPINJ_PLAN_WAIT_MS=0, FLOPINJ_FORCE=1)
            if report["ledger"][-1]["unmeasured"] == 0:
                break
        self.check(expected, report)

    def test_tally_level_says_the_same(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                expected, report = train(self, "--model", "cnn", "--mode", mode, "--steps", 12,
                                         FLOPINJ_LEVEL="tally", FLOPINJ_FORCE=1)
                self.check(expected, report)

    def test_oldest_supported_cupti(self):
        """CUPTI 12.6 has other record layouts than 13: the same figures."""
        expected, report = train(self, "--model", "cnn", "--steps", 12, SIMGPU_CUPTI_VERSION="12.6")
        self.check(expected, report)
        self.assertTrue(all(harness.known(k, "gpu_time_ns") for k in report["kernels"]))

    def test_same_grid_and_another_k_stay_apart(self):
        """fc1 and fc2 of the mlp launch the same grid with inner dimension 64 and 128."""
        expected, report = train(self, "--model", "mlp", "--steps", 12, batch=32)
        forward = harness.by(report, "kernels")["dense_forward"]
        self.assertEqual(forward["signatures"], 3)  # fc1, fc2 and fc3
        self.assertEqual(forward["varying_launches"], 0)
        shapes = {(s["grid"], s["block"]): set() for s in report["signatures"]}
        for s in report["signatures"]:
            if s["kernel"] == "dense_forward":
                shapes[s["grid"], s["block"]].add(int(s["flop_per_launch"]))
        self.assertIn({2 * 32 * 64 * 128, 2 * 32 * 128 * 128}, shapes.values())
        self.check(expected, report)

    def test_expected_ratio_of_layers(self):
        """2 - f1: the first layer's share of the forward FLOP is not paid twice in backward."""
        expected, report = train(self, "--model", "mlp", "--steps", 12)
        first = expected.layer_flop["forward", "fc1"] / expected.phase_flop["forward"]
        ratio = harness.by(report, "ratio")
        for end in ("least", "most"):
            self.assertAlmostEqual(ratio[f"expected of matrix work, {end}"]["value"], 2 - first,
                                   places=9)


class PhasesWithoutRanges(harness.TestCase):
    def test_autograd_thread_without_ranges_is_backward(self):
        expected, report = train(self, "--model", "mlp", "--mode", "autograd-thread", "--steps", 12)
        self.assertEqual(harness.by(report, "phases")["backward"]["flop"],
                         expected.phase_flop["backward"])

    def test_no_ranges_at_all_is_other(self):
        expected, report = train(self, "--model", "mlp", "--norange", "--steps", 12)
        self.assert_all_counted(report, expected.launches)
        self.assertEqual({row["phase"]: row["flop"] for row in report["phases"]},
                         {"other": expected.flop})
        self.assertIsNone(report["figures"]["ratio"])


class OperatorsOfPyTorch(harness.TestCase):
    """Ranges as emit_nvtx pushes them: formulas from their sizes, backward joined to forward by
    sequence numbers."""

    def check_layers(self, expected, report):
        """By layer, though backward's ranges name no layer."""
        layers = {(row["layer"], row["pass"]): row for row in report["layer_passes"]}
        for (phase, layer), flop in expected.layer_flop.items():
            if layer:
                self.assertEqual(layers[f"layer:{layer}", phase]["flop"], flop, (phase, layer))
        matrix = sorted((layer for layer in report["layers"] if layer["matrix_ratio"] is not None),
                        key=lambda layer: layer["layer"])
        for layer in matrix:  # the first layer's input needs no gradient
            self.assertEqual(layer["matrix_ratio"], layer["expected_ratio"], layer)
        self.assertEqual([layer["expected_ratio"] for layer in matrix],
                         [1] + [2] * (len(matrix) - 1))

    def check_operators(self, expected, report, steps):
        operators = report["operators"]
        types = {(o["operator"], o["phase"]): o for o in operators}
        covered = sum(map(harness.exact, operators))
        phases = ("forward", "backward", "optimizer")
        self.assertEqual(covered, sum(expected.phase_flop[phase] for phase in phases[:2]))
        for (name, phase), o in types.items():
            self.assertTrue(o["calls_counted"], name)
            self.assertEqual(o["calls"] % steps, 0, (name, o["calls"]))
            if name in ("aten::linear", "aten::conv2d", "aten::mm", "aten::sum"):
                self.assertEqual(o["formula_flop"], o["flop"], (name, phase))
                self.assertEqual(o["cause"], "", (name, phase))
            if name in ("aten::avg_pool2d", "aten::avg_pool2d_backward"):  # windows may overlap
                self.assertEqual((o["formula_flop"], o["cause"]), (None, "no formula"),
                                 (name, phase))
        self.assertEqual(types["aten::relu", "forward"]["cause"], "not counted")
        self.assertGreater(int(types["aten::relu", "forward"]["formula_uncounted"]), 0)
        self.assertEqual({row["found"]: row["launches"] for row in report["sequence_numbers"]
                          if row["launches"]},
                         {"forward_operator": expected.phase_launches["backward"]})

    def check_forward_backward(self, expected, report):
        """By the function that forward called: the layers of its kind, in both passes."""
        kinds = {
            "conv": "aten::conv2d", "fc": "aten::linear", "relu": "aten::relu",
            "pool": "aten::avg_pool2d"
        }
        theory = {}
        for (phase, layer), flop in expected.layer_flop.items():
            for kind, name in kinds.items():
                if layer and layer.startswith(kind):
                    theory[name, phase] = theory.get((name, phase), 0) + flop
        self.assertTrue(theory)
        passes = {(row["operator"], row["pass"]): row for row in report["operator_passes"]}
        for (name, phase), flop in theory.items():
            if phase in ("forward", "backward"):
                self.assertEqual(passes[name, phase]["flop"], flop, (name, phase))
        rows = harness.by(report, "operator_work")
        for name in ("aten::conv2d", "aten::linear"):
            if name in rows:
                row = rows[name]
                self.assertAlmostEqual(row["matrix_ratio"], row["expected_ratio"], msg=name)
        self.assertIsNone(rows["aten::relu"]["expected_ratio"])

    def test_formulas_and_layers_equal_theory(self):
        for model in ("mlp", "cnn"):
            for mode in ("plain", "autograd-thread"):
                with self.subTest(model=model, mode=mode):
                    expected, report = train(self, "--model", model, "--mode", mode, "--steps", 12,
                                             "--ranges", "pytorch", FLOPINJ_FORCE=1)
                    self.assert_all_counted(report, expected.launches)
                    phases = {row["phase"]: row["flop"] for row in report["phases"]}
                    self.assertEqual(phases, dict(expected.phase_flop))
                    self.check_layers(expected, report)
                    self.check_operators(expected, report, 6)
                    self.check_forward_backward(expected, report)
                    self.check_methods(expected, report)

    def check_methods(self, expected, report):
        """Theory is three times the forward pass by formula: all of its multiply-adds have one, and
        avg_pool2d, which has none, only adds. simgpu's fp32 peak is 2 x 132 x 128 x 1.98 GHz."""
        methods = harness.by(report, "utilization", "name")
        theory = methods["theory"]
        self.assertIn("3 x forward by formula", theory["basis"])
        self.assertEqual(theory["flop"], 3 * sum(
            int(o["formula_flop"] or 0) for o in report["operators"] if o["phase"] == "forward"))
        self.assertEqual(methods["formula"]["flop"], sum(
            harness.exact(o, "model_flop") or 0 for o in report["operators"]))
        self.assertIn("all matrix FLOP covered", methods["formula"]["basis"])
        step = sum(expected.phase_flop[phase] for phase in ("forward", "loss", "backward"))
        self.assertEqual(methods["batch"]["flop"], step)
        peak = 2 * 132 * 128 * 1.98e9
        self.assertAlmostEqual(methods["batch"]["utilization_gpu_time"],
                               step / peak / (methods["batch"]["gpu_time_ns"] * 1e-9))

    def test_convolutions_say_why_they_differ(self):
        expected, report = train(self, "--model", "cnn", "--steps", 12, "--ranges", "pytorch")
        places = {
            o["layer"]: o
            for o in report["operator_places"] if o["operator"] == "aten::conv2d"
        }
        self.assertEqual(set(places), {"layer:conv1", "layer:conv2"})
        causes = {
            o["range"]: (o["cause"], o["executed_formula_ratio"])
            for o in report["operator_places"] if o["operator"] == "aten::convolution_backward"
        }
        self.assertEqual(sorted(cause for cause, _ in causes.values()),
                         ["bias gradient", "no input gradient"])

    def test_tallies_count_calls_without_numbers(self):
        expected, report = train(self, "--model", "mlp", "--steps", 12, "--ranges", "pytorch",
                                 FLOPINJ_LEVEL="tally")
        types = {(o["operator"], o["phase"]): o for o in report["operators"]}
        linear = types["aten::linear", "forward"]
        layers = sum(o["operator"] == "aten::linear" and o["phase"] == "forward"
                     for o in report["operator_places"])
        self.assertEqual((linear["calls_counted"], linear["calls"]), (True, 12 * layers))
        self.assertEqual(linear["formula_flop"], expected.phase_flop["forward"])


class FmaConvention(harness.TestCase):
    def test_only_true_fmas_change(self):
        """Dense and convolution products are all multiply-adds: half. Pool and loss have none:
        unchanged."""
        expected, report = train(self, "--model", "cnn", "--steps", 12)
        one = harness.reduce(self.trace, options=["--fma", "1"])
        self.assertEqual((report["figures"]["fma"], one["figures"]["fma"]), (2, 1))
        kernels = harness.by(one, "kernels")
        for name, flop in expected.kernel_flop.items():
            halved = name.startswith(("dense", "conv2d", "sgd"))
            self.assertEqual(kernels[name]["flop"], flop // 2 if halved else flop, name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
