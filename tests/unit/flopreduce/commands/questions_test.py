"""Questions that flopreduce answers: utilization, roofline, peaks, project, compare, gates.
Expected figures are those that the published documents print (docs/why-numbers-differ.md), or
worked out here."""

import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "support"))
import report_schema  # noqa: E402
from report_tables import by, exact  # noqa: E402

FLOPREDUCE, MAKE_TRACES = sys.argv[1:3]
COMMANDS = ("compare", "explain", "peaks", "project")


def run(*arguments):
    return subprocess.run([FLOPREDUCE, *map(str, arguments)], capture_output=True, timeout=60,
                          text=True)


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="flopreduce-test-")
        cls.trace = {}
        for name in "training simulated vectors exact0 exact1 exact53 exact53_1".split():
            cls.trace[name] = Path(cls.temporary.name) / f"{name}.pb"
            with open(cls.trace[name], "wb") as out:
                subprocess.run([MAKE_TRACES, name], stdout=out, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def json(self, *arguments):
        done = run(*arguments, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        if arguments[0] not in COMMANDS:  # a report
            report_schema.validate(FLOPREDUCE, result)
        return result

    def projected(self, *arguments):
        """What `project train` works out, by figure."""
        rows = self.json("project", "train", *arguments)["projection"]
        return {row["figure"]: row["value"] for row in rows}


class Peaks(Base):
    def test_all_with_their_sources(self):
        result = self.json("peaks")
        gpus = {g["gpu"]: g for g in result["gpus"]}
        peaks = {(p["gpu"], p["precision"]): p for p in result["peaks"]}
        self.assertTrue(all(g["source"] for g in gpus.values()))
        self.assertEqual(peaks["V100 SXM2", "tensor_fp16"]["dense_flop_per_s"], 125e12)
        self.assertEqual(peaks["A100 SXM4 80GB", "tensor_bf16"]["sparse_flop_per_s"], 624e12)
        self.assertIn("simulated", gpus["simgpu GH100 (simulated)"]["source"])

    def test_the_whole_table_fits_80_columns(self):
        environment = {**os.environ, "COLUMNS": "80"}
        text = subprocess.run([FLOPREDUCE, "peaks"], capture_output=True, timeout=60, text=True,
                              env=environment).stdout
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        # Every dense figure of the JSON is in it, in 1e12.
        rows = [line.split() for line in text.splitlines()]
        self.assertNotIn("no room", text)
        for peak in self.json("peaks")["peaks"]:
            name = peak["gpu"].split()
            shown = sum((row[len(name):] for row in rows if row[:len(name)] == name), [])
            self.assertIn(f"{peak['dense_flop_per_s'] / 1e12:.6g}", shown, peak["gpu"])


class Published(Base):
    """Every figure that the documents print or that follows from theirs, by our arithmetic: see
    docs/why-numbers-differ.md."""

    def train(self, *arguments):
        return self.projected(*arguments)

    def test_k80_inference(self):
        """As the document prints them, all digits: a course report on PALEO and platform percent of
        peak (2022)."""
        for flop, fp32, fp64 in (("15503M", (0.0017758304696449026, 563.1168161001096),
                                  (0.005327491408934708, 187.7056053667032)),
                                 ("1606M", (0.00018396334478808707, 5435.865504358655),
                                  (0.0005518900343642612, 1811.9551681195517)),
                                 ("3922M", (0.0004492554410080183, 2225.9051504334525),
                                  (0.001347766323024055, 741.9683834778174))):
            rows = self.json("project", "infer", "--forward-flop", flop, "--gpu", "K80 board",
                             "--precision", "fp32,fp64")["inference"]
            for row, (seconds, rate) in zip(rows, (fp32, fp64), strict=True):
                self.assertAlmostEqual(row["time_s"] / seconds, 1, places=12)
                self.assertAlmostEqual(row["examples_per_s"] / rate, 1, places=12)

    def test_igpt(self):
        result = self.train("--time", "2500d", "--gpu", "V100 SXM2", "--precision", "tensor_fp16",
                            "--utilization", "0.3")
        self.assertAlmostEqual(result["time_flop"] / 8.1e21, 1, places=12)

    def test_transformer_and_its_misprint(self):
        # Per token: six pairs of three attention and two feed-forward layers, the last projection.
        attention = 2 * 16 * (64 * (2 * 64 + 64) + 20 * (64 + 64) + 64 * 1024)
        feed_forward = 2 * 2 * 1024 * 4096
        token = 6 * (3 * attention + 2 * feed_forward) + 2 * 1024 * 30000
        self.assertAlmostEqual(token / 3.1e8, 1, delta=0.01)
        right = self.train("--forward-flop", "3.1e8", "--examples", "7.5G")
        self.assertAlmostEqual(right["operations_flop"] / 6.97e18, 1, delta=1e-3)
        printed = self.train("--forward-flop", "3.1e9", "--examples", "7.5G")
        self.assertAlmostEqual(printed["operations_flop"] / 6.97e18, 10, delta=1e-2)

    def test_cnn_lstm_as_printed_and_corrected(self):
        common = ("--recurrent-steps", 20, "--examples", 12800, "--epochs", 10)
        self.assertAlmostEqual(
            self.train("--forward-flop", "1.024e12", *common)["operations_flop"] / 7.86432e18, 1,
            places=12)
        step = 200 * 200 * 16 * 2 * 5 * 5 * 5 + 4 * 2 * (640000 + 256) * 256
        corrected = self.train("--forward-flop", step, "--non-recurrent-flop", 5120, *common)
        self.assertAlmostEqual(corrected["operations_flop"] / 1.13e16, 1, delta=1e-3)

    def test_both_methods_agree_within_1_7(self):
        for utilization in ("0.3", "0.4"):
            both = self.train("--forward-flop", "3.1e8", "--examples", "7.5G", "--time", "3.5d",
                              "--devices", 8, "--gpu", "P100 SXM2", "--utilization", utilization)
            self.assertLess(both["factor"], 1.7)
            of = both["time_flop"], both["operations_flop"]
            self.assertAlmostEqual(both["factor"], max(of) / min(of))

    def test_vgg_printed_share_counts_a_pooling_layer_as_a_convolution(self):
        """Printed: 99.00 %, which is VGG16's. The document's convention: a bias is an operation for
        each output, ReLU 2 for each value, 2 x 2 pooling 3 for each output, the last pooling 49 for
        each of its 7 x 7 x 512 outputs."""
        def shares(thirds, deep):  # convolutions in the first two and in the last three blocks
            convolution, other, channels, size = 0, 0, 3, 224
            for width in (64, 128, 256, 512, 512):
                for _ in range(thirds if width < 256 else deep):
                    convolution += size**2 * width * (9 * channels + 1)
                    other += 2 * size**2 * width
                    channels = width
                size //= 2
                other += 3 * size**2 * width
            pooling = 49 * 7 * 7 * 512
            linear = 4096 * (25088 + 1) + 4096 * 4097 + 1000 * 4097 + 2 * 2 * 4096
            total = convolution + other + pooling + linear
            return (convolution + pooling) / total, convolution / total, total

        printed, strict, total = shares(2, 3)
        self.assertEqual(total, 15516752872)
        self.assertAlmostEqual(printed, 15361407488 / 15516752872, places=12)
        self.assertAlmostEqual(printed, 0.9900, delta=5e-5)
        self.assertAlmostEqual(strict, 0.9899, delta=5e-5)
        self.assertAlmostEqual(shares(2, 4)[1], 0.9919, delta=5e-5)  # the real VGG19


class Project(Base):
    def test_from_a_trace(self):
        vectors = self.trace["vectors"]
        total = 2 * (2 * 20000**2 - 20000)
        result = self.projected(vectors, "--trace-steps", 3, "--steps", "1k",
                           "--peak", "1T", "--devices", 2, "--utilization", "0.5")
        self.assertAlmostEqual(result["operations_flop"], total / 3 * 1000, delta=1)
        self.assertAlmostEqual(result["projected_s"] * 1e12 / result["operations_flop"], 1)

    def test_what_the_traces_measured_is_the_basis(self):
        """`vectors`: 1200 us of kernels in 2400 us of wall time, on one H200 of 67 TFLOP/s in
        fp32."""
        flop = 2 * (2 * 20000**2 - 20000)
        arguments = (self.trace["vectors"], "--trace-steps", 2, "--steps", 1000)
        result = self.projected(*arguments)
        self.assertAlmostEqual(result["gpu_step_s"], 1200e-6 / 2)
        self.assertAlmostEqual(result["wall_step_s"], 2400e-6 / 2)
        self.assertAlmostEqual(result["utilization"], flop / 67e12 / 2400e-6)
        self.assertAlmostEqual(result["peak_flop_per_s"] / 67e12, 1)
        self.assertEqual(result["devices"], 1)
        self.assertAlmostEqual(result["projected_s"], 1000 * 1200e-6)
        self.assertAlmostEqual(result["operations_flop"] / (67e12 * result["utilization"]),
                               result["projected_s"])

    def test_typed_options_go_over_what_was_measured(self):
        arguments = (self.trace["vectors"], "--trace-steps", 2, "--steps", 1000)
        self.assertAlmostEqual(
            self.projected(*arguments, "--devices", 4)["projected_s"], 1000 * 1200e-6 / 4)
        half = self.projected(*arguments, "--utilization", "0.5")
        self.assertEqual(half["utilization"], 0.5)
        self.assertAlmostEqual(half["projected_s"], half["operations_flop"] / (67e12 * 0.5))
        measured = self.projected(*arguments)["utilization"]
        other = self.projected(*arguments, "--gpu", "L4")
        self.assertEqual(other["utilization"], measured)
        self.assertAlmostEqual(other["projected_s"],
                               other["operations_flop"] / (other["peak_flop_per_s"] * measured))
        both = self.projected(*arguments, "--time", "2s")
        self.assertAlmostEqual(both["time_flop"], 2 * 67e12 * measured, delta=1e3)

    def test_simulated_steps_have_gpu_time_alone(self):
        result = self.projected(self.trace["exact1"], "--trace-steps", 1, "--steps", 2)
        self.assertNotIn("wall_step_s", result)  # nothing says how long the process recorded
        self.assertAlmostEqual(result["gpu_step_s"], 2e-6)
        self.assertAlmostEqual(result["projected_s"], 4e-6)


class Utilization(Base):
    """The trace `vectors`: N = 20,000, fp32, one H200 by name; times are made up, and so are all
    shares here."""
    N = 20000
    FLOP = 2 * N**2 - N  # of either side
    PEAK = 67e12
    BANDWIDTH = 4.8e12

    def report(self, *options):
        return self.json(self.trace["vectors"], *options)

    def test_equal_flop_and_twice_the_traffic(self):
        report = self.report()
        ranges = by(report, "ranges").values()
        self.assertEqual([exact(row) for row in ranges], [799_980_000, 799_980_000])
        kernels = by(report, "roofline")
        matvec = int(kernels["matrix_vector"]["dram_bytes"])
        outer = int(kernels["outer_product"]["dram_bytes"]) + int(kernels["row_sum"]["dram_bytes"])
        self.assertEqual(matvec, 1_600_160_000)  # 1.6 GB, and two vectors
        self.assertEqual(outer, 3_200_240_000)
        for name, time in (("matrix_vector", 400e-6), ("outer_product", 410e-6), ("row_sum",
                                                                                  390e-6)):
            k = kernels[name]
            self.assertEqual((k["bound_by"], k["nearer_roof"]), ("memory", "memory"))
            self.assertAlmostEqual(k["byte_per_s"], int(k["dram_bytes"]) / time, delta=1)
            self.assertAlmostEqual(k["roof_share"], int(k["dram_bytes"]) / self.BANDWIDTH / time)
        self.assertAlmostEqual(kernels["matrix_vector"]["flop_per_byte"], self.FLOP / matvec)
        self.assertAlmostEqual(kernels["matrix_vector"]["utilization"],
                               self.FLOP / self.PEAK / 400e-6)

    def test_the_run(self):
        report = self.report()
        device, = report["peak_devices"]
        self.assertEqual(device["row"], "H200 SXM 141GB")
        self.assertEqual(by(report, "peaks", "roof")["fp32"]["flop_per_s"], self.PEAK)
        methods = by(report, "utilization", "name")
        self.assertAlmostEqual(methods["executed"]["utilization_gpu_time"],
                               2 * self.FLOP / self.PEAK / 1200e-6)
        self.assertAlmostEqual(methods["executed"]["utilization_wall"],
                               2 * self.FLOP / self.PEAK / 2400e-6)
        self.assertEqual(list(methods), ["executed", "formula", "theory", "one", "batch", "epoch"])

    def test_one_fma_as_one_halves_the_peak_too(self):
        """All of this trace's FLOP are single adds and multiplies: with --fma 1 they are as many,
        against half the peak."""
        whole = self.report()["figures"]["hfu_kernel_time"]
        half = self.report("--fma", 1)["figures"]["hfu_kernel_time"]
        self.assertAlmostEqual(half, 2 * whole)

    def test_the_four_methods(self):
        options = ("--phase", "forward=^matrix", "--phase", "backward=^outer", "--formula-flop",
                   "3.2G", "--forward-flop", "1G", "--batch-size", 1)
        methods = by(self.report(*options), "utilization", "name")
        share = {name: method["utilization_gpu_time"] for name, method in methods.items()}
        self.assertAlmostEqual(share["formula"], 3.2e9 / self.PEAK / 1200e-6)
        self.assertAlmostEqual(share["theory"], 3 * 1e9 / self.PEAK / 1200e-6)
        for name in ("executed", "one", "batch", "epoch"):
            self.assertAlmostEqual(share[name], 2 * self.FLOP / self.PEAK / 1200e-6)
        without = by(self.report(*options[:4]), "utilization", "name")
        self.assertAlmostEqual(without["theory"]["utilization_gpu_time"],
                               3 * self.FLOP / self.PEAK / 1200e-6)
        self.assertIn("--batch-size 1", without["one"]["utilization_gpu_time_why"])
        self.assertIsNone(without["formula"]["flop"])

    def test_above_peak_is_an_error_and_no_number(self):
        report = self.report("--peak", "fp32=1G", "--peak", "memory=1G")
        executed = by(report, "utilization", "name")["executed"]
        self.assertEqual((executed["utilization_gpu_time"], executed["utilization_gpu_time_why"]),
                         (None, "above peak"))
        self.assertTrue(all(row["utilization"] is None and row["roof_share"] is None
                            for row in report["roofline"]))

    def test_a_peak_may_be_given(self):
        report = self.json(self.trace["training"], "--peak", "test gpu:fp32=10M")
        peak = by(report, "peaks", "roof")["fp32"]
        self.assertEqual((peak["flop_per_s"], peak["source"]), (10e6, "--peak"))

    def test_a_simulated_trace_is_never_measured_against_a_real_gpu(self):
        report = self.json(self.trace["simulated"])
        self.assertEqual(len(report["peak_devices"]), 1)
        self.assertEqual(report["peaks"], [])

class Compare(Base):
    def compare(self, *options):
        return self.json("compare", self.trace["vectors"], self.trace["vectors"], *options)

    def test_the_same_twice_is_the_same(self):
        result = self.compare()
        self.assertEqual(result["kernel_counts"],
                         [{"appeared": 0, "vanished": 0, "changed": 0, "same": 3}])
        self.assertEqual(by(result, "total")["flop"]["ratio"], 1)
        self.assertIsNone(result["comparison"][0]["normalization"])

    def test_normalized_by_batch(self):
        total = by(self.compare("--normalize", "batch=64,128"), "total")
        self.assertEqual((total["flop"]["ratio"], total["flop"]["normalized_ratio"]), (1, 0.5))
        self.assertEqual(
            self.compare("--normalize", "batch=1:64")["comparison"],
            [{"simulated": False, "simulated_clock": False, "ptx_counts": False,
              "verdict_a": None, "verdict_b": None, "normalization": "batch",
              "normalization_a": 1, "normalization_b": 64}])

    def test_kernels_that_appear_and_vanish(self):
        result = self.json("compare", self.trace["vectors"], self.trace["simulated"])
        words = {k["name"]: k["change"] for k in result["compared_kernels"]}
        self.assertEqual(words["matrix_vector"], "vanished")
        self.assertEqual(words["dense_forward(int, float const*, float*)"], "appeared")
        self.assertEqual(result["kernel_counts"][0]["same"], 0)
        self.assertTrue(result["comparison"][0]["simulated"])
        # One side has unmeasured launches.
        self.assertIsNone(by(result, "total")["flop"]["ratio"])

    def changed(self, a, b, *options):
        result = self.json("compare", self.trace[a], self.trace[b], *options)
        kernels = {k["name"]: k for k in result["compared_kernels"]}
        return kernels["counted"], {name: k["change"] for name, k in kernels.items()}

    def test_from_0_to_something_is_a_change(self):
        for a, b in (("exact0", "exact1"), ("exact1", "exact0")):
            for options in ((), ("--normalize", "batch=64,128")):
                kernel, words = self.changed(a, b, *options)
                self.assertEqual(words, {"counted": "changed", "zero": "same"})
                self.assertEqual(kernel["flop_ratio"], None if a == "exact0" else 0)

    def test_integers_beyond_2_to_53_are_exact(self):
        kernel, words = self.changed("exact53", "exact53_1")
        self.assertEqual((kernel["flop_a_exact"], kernel["flop_b_exact"]),
                         (str(2**53), str(2**53 + 1)))
        self.assertEqual(words["counted"], "changed")
        kernel, words = self.changed("exact53", "exact53_1", "--normalize", "batch=1,1")
        self.assertEqual(words["counted"], "same")  # divided: as exact as a division

    def test_help_has_an_example_that_works(self):
        text = " ".join(run("compare", "--help").stdout.split())
        condition = text.split("CONDITION holds, such as '")[1].split("'")[0]
        self.assertEqual(
            run("compare", self.trace["vectors"], self.trace["vectors"], "--fail-if",
                condition).returncode, 0)
        done = run("compare", self.trace["vectors"], self.trace["vectors"], "--fail-if",
                   "ratio > 1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("total.flop.ratio", done.stderr)
        for near in done.stderr.split("near: ")[1].split(";")[0].split(", "):
            done = run("compare", self.trace["vectors"], self.trace["vectors"], "--fail-if",
                       f"{near.strip()} >= 0")
            self.assertNotEqual(done.returncode, 2, done.stderr)

    def test_tables_are_those_of_the_json(self):
        both = (self.trace["vectors"], self.trace["simulated"])
        done = run("compare", *both, "--format", "csv", "--table", "compared_kernels")
        rows = {r["name"]: r for r in csv.DictReader(io.StringIO(done.stdout))}
        kernels = self.json("compare", *both)["compared_kernels"]
        self.assertEqual(set(rows), {k["name"] for k in kernels})
        for k in kernels:
            row = rows[k["name"]]
            self.assertEqual(row["change"], k["change"])
            for side in "ab":
                self.assertEqual(row[f"launches_{side}"], str(k[f"launches_{side}"] or ""))
        table = self.json("compare", *both, "--table", "compared_kernels")
        self.assertEqual(table["compared_kernels"], kernels)
        self.assertNotIn("compared_phases", table)
        result = self.json("peaks")
        peaks = list(csv.DictReader(io.StringIO(
            run("peaks", "--format", "csv", "--table", "peaks").stdout)))
        self.assertEqual({r["gpu"] for r in peaks}, {g["gpu"] for g in result["gpus"]})
        for row, peak in zip(peaks, result["peaks"], strict=True):
            self.assertEqual(float(row["dense_flop_per_s"]), peak["dense_flop_per_s"])
            for key in ("gpu", "precision", "source"):
                self.assertEqual(row[key], peak[key])
        explained = run("explain", "total", both[1], "--format", "csv", "--table",
                        "signatures").stdout
        self.assertEqual(len(list(csv.DictReader(io.StringIO(explained)))),
                         len(self.json("explain", "total", both[1])["signatures"]))

    def test_projections_in_other_forms(self):
        train = ("project", "train", "--flop-per-step", "1T", "--steps", "10", "--time", "1h",
                 "--peak", "1T")
        rows = {
            r["figure"]: r
            for r in csv.DictReader(io.StringIO(run(*train, "--format", "csv").stdout))
        }
        figures = by(self.json(*train), "projection")
        self.assertEqual({k: (float(r["value"]), r["from"]) for k, r in rows.items()},
                         {k: (row["value"], row["from"]) for k, row in figures.items()})
        self.assertEqual(rows["operations_flop"]["from"], "FLOP of a step x 10 steps")
        self.assertIn("| by operations |", run(*train, "--format", "markdown").stdout)
        infer = ("project", "infer", "--forward-flop", "15503M", "--gpu", "K80 board",
                 "--precision", "fp32,fp64")
        rows = list(csv.DictReader(io.StringIO(run(*infer, "--format", "csv").stdout)))
        for row, entry in zip(rows, self.json(*infer)["inference"], strict=True):
            self.assertEqual({k: v for k, v in row.items() if k in ("precision", "source")},
                             {k: entry[k] for k in ("precision", "source")})
            for key in ("peak_flop_per_s", "time_s", "examples_per_s"):
                self.assertEqual(float(row[key]), entry[key])

    def test_a_phase_that_a_side_lacks_is_0_launches_and_0_flop_there(self):
        one = self.json("compare", self.trace["vectors"], self.trace["simulated"])
        appeared = by(one, "compared_phases")["backward"]
        self.assertEqual((appeared["change"], appeared["launches_a"], appeared["flop_a"]),
                         ("appeared", 0, 0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
