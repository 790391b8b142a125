"""Thirteen networks: their tables against published figures, and flopreduce's reports of traces
made from them against theory.

Usage: networks_test.py BUILD
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import made_trace  # noqa: E402
import table  # noqa: E402
from networks import TABLES, TRAINING_STEPS, Network  # noqa: E402
import report_schema  # noqa: E402
from report_tables import by, exact  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()

# Million forward multiply-adds for one image and ten classes.
MACS = {
    "alexnet": 710.13, "vgg11": 7605.04, "vgg13": 11304.41, "vgg16": 15466.21, "vgg19": 19628.01,
    "resnet18": 1813.57, "resnet34": 3663.25, "resnet50": 4087.16, "resnet101": 7799.38,
    "resnet152": 11511.60, "wide_resnet50_2": 11395.99, "mobilenet_v2": 299.51,
    "efficientnet_b0": 384.55
}
RATIO = {
    "alexnet": 1.901, "resnet18": 1.935, "resnet34": 1.968, "resnet50": 1.971, "vgg16": 1.994,
    "mobilenet_v2": 1.964, "efficientnet_b0": 1.972
}
# Parameters with 1,000 classes: torchvision's documentation, num_params of the pre-trained weights.
PARAMETERS = {
    "alexnet": 61100840, "vgg11": 132863336, "vgg13": 133047848, "vgg16": 138357544,
    "vgg19": 143667240, "resnet18": 11689512, "resnet34": 21797672, "resnet50": 25557032,
    "resnet101": 44549160, "resnet152": 60192808, "wide_resnet50_2": 68883240,
    "mobilenet_v2": 3504872, "efficientnet_b0": 5288548
}


class Tables(unittest.TestCase):
    def test_all_thirteen(self):
        self.assertEqual(set(TABLES), set(MACS))
        self.assertEqual(len(TABLES), 13)

    def test_forward_multiply_adds(self):
        for name, million in MACS.items():
            self.assertEqual(round(Network(name).forward_macs / 1e6, 2), million, name)

    def test_parameters(self):
        for name, parameters in PARAMETERS.items():
            self.assertEqual(Network(name, 1000).parameters, parameters, name)

    def test_backward_over_forward(self):
        for name, ratio in RATIO.items():
            self.assertEqual(round(Network(name).ratio, 3), ratio, name)


def operators(report):
    return {(o["operator"], o["phase"]): o for o in report["operators"]}


class Reports(unittest.TestCase):
    """Executed FLOP are what made_trace wrote down; formulas are flopreduce's own, from the sizes
    in the ranges."""

    def check(self, network, batch):
        steps, report = made_trace.STEPS, table.by_formula(BUILD, network.name, batch)
        images, phases, figures = steps * batch, by(report, "phases"), report["figures"]
        self.assertEqual((figures["partial"], figures["unmeasured_launches"]), (False, 0))
        self.assertEqual(exact(phases["forward"], "matrix_flop"), 2 * images * network.forward_macs)
        self.assertEqual(exact(phases["backward"], "matrix_flop"),
                         2 * images * network.backward_macs)
        self.assertAlmostEqual(figures["matrix_ratio"], network.ratio, places=9)
        ratio = by(report, "ratio")
        for end in ("least", "most"):
            self.assertAlmostEqual(ratio[f"expected of matrix work, {end}"]["value"],
                                   network.ratio, places=9)

        macs = {
            kind: sum(layer.macs for layer in network.layers if layer.kind == kind)
            for kind in ("conv", "linear")
        }
        types = operators(report)
        for operator, phase, expected in (("aten::conv2d", "forward", macs["conv"]),
                                          ("aten::linear", "forward", macs["linear"]),
                                          ("aten::convolution_backward", "backward",
                                           2 * macs["conv"]), ("aten::mm", "backward",
                                                               2 * macs["linear"])):
            self.assertEqual(int(types[operator, phase]["formula_flop"]), 2 * images * expected,
                             operator)
        biases = sum(layer.elements for layer in network.layers if layer.bias)
        # For one image, at any batch size.
        forward = f"{(2 * network.forward_macs + biases) / 1e6:,.2f} M"
        self.assertEqual(table.executed(report, images)[0][::2], (forward, f"{network.ratio:.4f}"))

        products = made_trace.with_products(network)
        rows = {row["layer"].removeprefix("layer:"): row for row in report["layers"]}
        self.assertEqual(sorted(rows), sorted(name for name, _ in products))
        work = [row["forward_flop"] + row["backward_flop"] for row in report["layers"]]
        self.assertEqual(work, sorted(work, reverse=True))
        whole = int(phases["forward"]["flop"])
        for name, layer in products:
            self.assertEqual(int(rows[name]["forward_formula_flop"]), 2 * images * layer.macs, name)
            self.assertEqual(rows[name]["expected_ratio"],
                             1 if layer is products[0][1] else 2, name)
            executed = images * (2 * layer.macs + (layer.elements if layer.bias else 0))
            self.assertAlmostEqual(rows[name]["forward_share"], executed / whole, places=12)
        self.assertAlmostEqual(sum(row["forward_share"] for row in rows.values()), 1, places=9)
        return report

    def check_utilization(self, network, batch, report):
        """By the made-up times all executed work runs at half of the peak; the methods differ in
        what they take for work."""
        total, phases = exact(report["figures"]), by(report, "phases")
        training = int(phases["forward"]["flop"]) + int(phases["backward"]["flop"])
        images = made_trace.STEPS * batch
        optimizer = 2 * made_trace.STEPS * network.parameters
        sums = images * sum(layer.elements - layer.outputs / batch
                            for layer in network.layers if layer.kind == "linear")
        # Operators with a formula: products that were computed, and sums over the rows of the
        # gradients of linear layers (elements of their input).
        formula = 2 * images * (network.forward_macs +
                                network.backward_macs) + sums + made_trace.STEPS * sum(
                                    layer.outputs
                                    for layer in network.layers if layer.kind == "linear")
        expected = {
            "executed": 1, "epoch": 1, "batch": 1, "one": 1 if batch == 1 else None,
            "formula": formula / total, "theory": 3 * 2 * images * network.forward_macs / training
        }
        self.assertEqual(total, training + optimizer)
        methods = {m["name"]: m["utilization_gpu_time"] for m in report["utilization"]}
        for name, ratio in expected.items():
            if ratio is None:
                self.assertIsNone(methods[name])
            else:
                self.assertAlmostEqual(methods[name], 0.5 * ratio, places=5,
                                       msg=f"{network.name} {batch} {name}")

    def test_formulas_and_methods_of_every_network(self):
        for name in TABLES:
            with self.subTest(name=name):
                network = Network(name)
                self.check_utilization(network, 64, self.check(network, 64))

    def test_other_batch_sizes(self):
        for name in ("resnet18", "vgg11", "mobilenet_v2"):
            for batch in (1, 128):
                with self.subTest(name=name, batch=batch):
                    network = Network(name)
                    self.check_utilization(network, batch, self.check(network, batch))

    def test_batches_compare_equal(self):
        with tempfile.TemporaryDirectory(prefix="flopinj-networks-") as folder:
            traces = [Path(folder) / f"{batch}.pb" for batch in table.BATCHES]
            for batch, trace in zip(table.BATCHES, traces):
                made_trace.training(Network("resnet18"),
                                    batch).write(BUILD / "test-bin/write_trace", trace)
            for batch, trace in list(zip(table.BATCHES, traces))[1:]:
                command = [
                    BUILD / "bin/flopreduce", "compare", traces[0], trace, "--normalize",
                    f"batch=1,{batch}", "--format", "json"
                ]
                phases = json.loads(
                    subprocess.run(command, capture_output=True, check=True,
                                   timeout=60).stdout)["compared_phases"]
                forward = next(phase for phase in phases if phase["name"] == "forward")
                self.assertEqual((forward["change"], forward["flop_ratio"]),
                                 ("same", 1.0))


class Table(unittest.TestCase):
    def test_hardware_has_columns_of_its_own(self):
        with tempfile.TemporaryDirectory(prefix="flopinj-networks-") as folder:
            cells = dict(zip(table.HEAD, table.row(BUILD, "alexnet", 64, Path(folder)),
                             strict=True))
            self.assertEqual([cells[name] for name in table.HEAD if name.startswith("hw")],
                             ["-"] * 4)
            self.assertEqual((cells["images"], cells["executed"], cells["batch"]),
                             ("64", "50.00 %", "50.00 %"))
            # Not of hardware at all, but as many steps as are run there; the device has no peak in
            # flopreduce's table.
            made_trace.training(Network("alexnet"), 64, TRAINING_STEPS).write(
                BUILD / "test-bin/write_trace", Path(folder) / "pytorch.alexnet.batch64.pb")
            cells = dict(zip(table.HEAD, table.row(BUILD, "alexnet", 64, Path(folder)),
                             strict=True))
            self.assertEqual(
                [cells[f"hw {name}"] for name in ("forward", "backward", "ratio", "executed")],
                [cells["forward"], cells["backward"], cells["ratio"], "-"])


class ConvolutionShare(unittest.TestCase):
    """Of VGG's forward FLOP, counted as the notebook that printed 99.00 % did: 15,361,407,488 /
    15,516,752,872, which has the pooling layer before the classifier among the convolutions."""

    def shares(self, name):
        with tempfile.TemporaryDirectory(prefix="flopinj-networks-") as folder:
            trace = Path(folder) / "made.pb"
            made_trace.as_pthflops(Network(name, 1000), 1).write(BUILD / "test-bin/write_trace",
                                                                 trace)
            report = table.report(BUILD, trace, 1, "--fma", "1")
        report_schema.validate(BUILD / "bin/flopreduce", report)
        return by(report, "operator_work"), exact(by(report, "phases")["forward"])

    def test_vgg16(self):
        rows, whole = self.shares("vgg16")
        convolutions, pooling = rows["aten::conv2d"], rows["aten::adaptive_avg_pool2d"]
        self.assertEqual(whole, 15516752872)
        self.assertEqual(sum(exact(row, "forward_flop") for row in (convolutions, pooling)),
                         15361407488)
        self.assertEqual(f"{100 * (convolutions['forward_share'] + pooling['forward_share']):.2f}",
                         "99.00")
        self.assertEqual(f"{100 * convolutions['forward_share']:.2f}", "98.99")

    def test_vgg19(self):
        self.assertEqual(f"{100 * self.shares('vgg19')[0]['aten::conv2d']['forward_share']:.2f}",
                         "99.19")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
