"""Questions that flopreduce answers: utilization, roofline, peaks, project, compare, gates.
Expected figures are those that the published documents print (docs/published-figures.md), or worked
out here."""

import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import jsonschema

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "support"))
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
        for name in ("training", "simulated", "vectors", "exact0", "exact1", "exact53", "exact53_1",
                     "rounded"):
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
            jsonschema.validate(result, json.loads(run("schema").stdout))
        return result

    def refused(self, code, words, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertTrue(done.stderr.startswith("flopreduce: "), done.stderr)

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

    def test_by_name(self):
        text = run("peaks", "h100 pcie").stdout
        self.assertIn("H100 PCIe 80GB", text)
        self.assertIn("2.039e+03 GB/s".replace("2.039e+03", "2039"), text)
        self.assertNotIn("SXM", text)
        self.refused(2, "no GPU in the table fits 'z80'", "peaks", "z80")


class Published(Base):
    """Every figure that the documents print or that follows from theirs, by our arithmetic: see
    docs/published-figures.md."""

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
        self.assertIn("executed, of 3 steps in the traces",
                      run("project", "train", vectors, "--trace-steps", 3, "--steps", 5).stdout)

    def test_a_trace_with_unmeasured_launches_is_no_basis(self):
        self.refused(3, "unmeasured launches", "project", "train", self.trace["training"],
                     "--trace-steps", 1, "--steps", 2)

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
        text = run("project", "train", *arguments).stdout
        for words in ("wall time of a step x steps", "measured, over wall time",
                      "of the precisions that ran, on NVIDIA H200",
                      "sum of kernels, of 2 steps in the traces", "in the traces"):
            self.assertIn(words, text)
        self.assertNotIn("assumed", text)

    def test_typed_options_go_over_what_was_measured(self):
        arguments = (self.trace["vectors"], "--trace-steps", 2, "--steps", 1000)
        self.assertAlmostEqual(
            self.projected(*arguments, "--devices", 4)["projected_s"], 1000 * 1200e-6 / 4)
        self.assertIn("x 1 / 4 devices", run("project", "train", *arguments, "--devices", 4).stdout)
        half = self.projected(*arguments, "--utilization", "0.5")
        self.assertEqual(half["utilization"], 0.5)
        self.assertAlmostEqual(half["projected_s"], half["operations_flop"] / (67e12 * 0.5))
        self.assertIn("given", run("project", "train", *arguments, "--utilization", "0.5").stdout)
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

    def test_no_result_is_infinite_or_zero(self):
        train, infer = ("project", "train"), ("project", "infer", "--peak", "1T")
        flop, time = ("--flop-per-step", "1G", "--steps", 10), ("--time", "1h", "--peak", "1T")
        for arguments, word in (((*train, *flop, "--peak", "1T", "--devices", 0),
                                 "--devices 0: must be above 0"),
                                ((*train, "--forward-flop", 0, "--examples", 1, *time),
                                 "--forward-flop 0: must be above 0"),
                                ((*train, "--forward-flop", 1, "--examples", 0),
                                 "--examples 0: must be above 0"),
                                ((*train, "--flop-per-step", 1, "--steps", 0),
                                 "--steps 0: must be above 0"), ((*train, *flop, "--peak", 0),
                                                                 "--peak 0: must be above 0"),
                                ((*train, "--flop-per-step", "1e300", "--steps", "1e300"),
                                 "beyond any number"), ((*train, "--flop-per-step", "1e-300",
                                                         "--steps", "1e-300"), "would be 0"),
                                ((*train, *flop, "--peak", "1e-300", "--devices", "1e-300"),
                                 "beyond any number"), ((*train, "--time", "1e300d", "--peak",
                                                         "1e300"), "beyond any number"),
                                ((*infer, "--forward-flop", "0"),
                                 "--forward-flop 0: must be above 0"),
                                ((*infer, "--forward-flop", "1e-300"), "beyond any number")):
            for form in ("text", "json"):
                done = run(*arguments, "--format", form)
                self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(word, done.stderr)

    def test_options_without_effect_are_refused(self):
        train, infer = ("project", "train"), ("project", "infer")
        steps, examples = ("--flop-per-step", "1G", "--steps", 10), ("--forward-flop", "1G",
                                                                     "--examples", 10)
        traces = (self.trace["vectors"], "--trace-steps", 1, "--steps", 10)
        time = ("--time", "1h", "--peak", "1T")
        for basis in (steps, traces, time):
            for option in ("--recurrent-steps", "--epochs", "--examples", "--backward-ratio",
                           "--non-recurrent-flop"):
                self.refused(2, f"{option} has no effect here", *train, *basis, option, 9)
        for basis, options in ((examples, (("--steps", 5), ("--trace-steps", 5), ("--fma", 1),
                                           ("--devices", 2), ("--utilization",
                                                              "0.3"), ("--precision", "fp16"))),
                               (steps, (("--trace-steps", 5), ("--phase", "a=b"))),
                               (time, (("--steps", 5), ("--precision", "fp16")))):
            for option in options:
                self.refused(2, f"{option[0]} has no effect here", *train, *basis, *option)
        self.refused(2, "--precision has no effect here", *infer, "--forward-flop", "1G", "--peak",
                     "1T", "--precision", "fp16")

    def test_what_is_wrong_is_said(self):
        train = ("project", "train")
        self.refused(2, "--examples", *train, "--forward-flop", "1G")
        self.refused(2, "--flop-per-step and --steps", *train, "--flop-per-step", "1G")
        self.refused(2, "must be a duration", *train, "--time", "3x", "--peak", "1T")
        self.refused(2, "--time and --gpu or --peak", *train, "--time", "3d")
        self.refused(2, "ambiguous", *train, "--time", "3d", "--gpu", "a100")
        self.refused(2, "no peak for 'fp7'", *train, "--time", "3d", "--gpu", "L4", "--precision",
                     "fp7")
        self.refused(2, "a share, not percent", *train, "--time", "3d", "--peak", "1T",
                     "--utilization", "30")
        self.refused(2, "--examples abc: must be a number", *train, "--forward-flop", "1G",
                     "--examples", "abc")
        self.refused(2, "a number is wrong", *train, "--forward-flop", "1T", "--examples", 2,
                     "--time", "1s", "--peak", "1T")
        self.refused(2, "--forward-flop is missing", "project", "infer", "--gpu", "L4")
        self.refused(2, "--gpu or --peak is missing", "project", "infer", "--forward-flop", "1G")
        self.refused(2, "which command", "project")


class Gates(Base):
    def gate(self, *conditions, trace="vectors"):
        options = [o for c in conditions for o in ("--fail-if", c)]
        return run("--all", self.trace[trace], *options)

    def test_exit_codes(self):
        self.assertEqual(self.gate("total.flop > 1e30").returncode, 0)
        failed = self.gate("total.flop > 1e30", "total.flop > 1")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("gate failed: 'total.flop > 1': total.flop = ", failed.stderr)
        self.assertIn("By phase", failed.stdout)  # the report is written all the same

    def test_what_is_not_known_fails(self):
        for condition in ("total.flop > 1M", "total.flop <= 1M", "flop > 1M or launches < 0"):
            done = self.gate(condition, trace="training")
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot be decided", done.stderr)
        self.assertEqual(self.gate("flop > 1M and launches < 0", trace="training").returncode, 0)
        # It executes at least 86,820: that is known.
        self.assertEqual(self.gate("total.flop <= 86k", trace="training").returncode, 0)

    def test_a_phase_that_no_launch_had_is_0_launches_and_0_flop(self):
        """A rule for CI such as "nothing is recomputed" holds where there is no such launch."""
        self.assertNotIn("recompute", by(self.json(self.trace["vectors"]), "phases"))
        passes = self.gate(
            "phases.recompute.flop > 0 or phases.recompute.launches > 0 or "
            "phases.recompute.gpu_time_ns > 0"
        )
        self.assertEqual(passes.returncode, 0, passes.stderr)
        self.assertEqual(self.gate("phases.recompute.launches == 0").returncode, 1)
        self.assertEqual(self.gate("phases.recomputation.flop > 0").returncode, 2)

    def test_errors_of_usage(self):
        done = self.gate("total.flop >")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.splitlines()[1:], ["    total.flop >", "                ^"])
        done = self.gate("total.flops > 1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no figure 'total.flops'; near: flop", done.stderr)


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
        for options in ((), ("--all",)):
            text = run(self.trace["vectors"], "--peak", "fp32=1G", *options).stdout
            self.assertIn("is above the devices' peak: its FLOP, its time or the peak is wrong",
                          text)

    def test_an_unknown_gpu_is_refused_with_the_option_to_type(self):
        self.assertIn("no peak of 'Test GPU' is known: --peak PRECISION=VALUE",
                      run(self.trace["training"]).stdout)
        done = run("--all", self.trace["training"])
        self.assertIn(
            "Test GPU is not in the table of peaks; give its peak: --peak 'Test GPU:fp32=VALUE'",
            done.stdout)
        report = self.json(self.trace["training"], "--peak", "test gpu:fp32=10M")
        peak = by(report, "peaks", "roof")["fp32"]
        self.assertEqual((peak["flop_per_s"], peak["source"]), (10e6, "--peak"))
        self.refused(2, "is none of fp64, fp32", self.trace["training"], "--peak", "fp31=1T")

    def test_a_peak_for_no_device_is_an_error(self):
        for command in ((), ("explain", "total")):
            self.refused(2, "no device in these traces is named so; they have NVIDIA H200",
                         *command, self.trace["vectors"], "--peak", "NVIDIA H100:fp32=30T")
        self.assertEqual(run(self.trace["vectors"], "--peak", "H200:fp32=30T").returncode, 0)

    def test_a_simulated_trace_is_never_measured_against_a_real_gpu(self):
        report = self.json(self.trace["simulated"])
        self.assertEqual(len(report["peak_devices"]), 1)
        self.assertEqual(report["peaks"], [])

    def test_people_see_it(self):
        text = run("--all", self.trace["vectors"]).stdout
        for words in ("Utilization", "NVIDIA H200: peaks of H200 SXM 141GB, fp32 67 TFLOP/s",
                      "memory 4.8 TB/s", "NVIDIA H200 Tensor Core GPU data sheet", "Roofline",
                      "ridge point 13.96 FLOP/B (fp32)"):
            self.assertIn(words, text)


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
              "normalization": "batch", "normalization_a": 1,
              "normalization_b": 64}])
        for wrong in ("batch", "batch=1", "=1,2", "batch=0,1", "batch=1,x"):
            self.refused(2, "must be NAME=A,B", "compare", self.trace["vectors"],
                         self.trace["vectors"], "--normalize", wrong)

    def test_kernels_that_appear_and_vanish(self):
        result = self.json("compare", self.trace["vectors"], self.trace["simulated"])
        words = {k["name"]: k["change"] for k in result["compared_kernels"]}
        self.assertEqual(words["matrix_vector"], "vanished")
        self.assertEqual(words["dense_forward(int, float const*, float*)"], "appeared")
        self.assertEqual(result["kernel_counts"][0]["same"], 0)
        self.assertTrue(result["comparison"][0]["simulated"])
        # One side has unmeasured launches.
        self.assertIsNone(by(result, "total")["flop"]["ratio"])
        self.assertIn("SIMULATED",
                      run("compare", self.trace["vectors"], self.trace["simulated"]).stdout)

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
        done = run("compare", self.trace["exact53"], self.trace["exact53_1"], "--fail-if",
                   f"total.flop.b == {2**53 + 1}")
        self.assertEqual(done.returncode, 1, done.stderr)
        gate = run(self.trace["exact53_1"], "--fail-if", f"total.flop == {2**53 + 1}")
        self.assertEqual(gate.returncode, 1, gate.stderr)
        self.assertIn(f"total.flop = {2**53 + 1}", gate.stderr)
        self.assertEqual(
            run(self.trace["exact53_1"], "--fail-if", f"total.flop < {2**53 + 1}").returncode, 0)
        self.assertEqual(
            run(self.trace["exact53"], "--fail-if", f"total.flop < {2**53 + 1}").returncode, 1)

    def test_one_sample_cannot_disagree(self):
        """A count of 2^53 may have been rounded by the counter: an estimate, but not by
        disagreement."""
        text = run("--all", self.trace["rounded"]).stdout
        self.assertIn("1 launches are of kernels with counts rounded by the counter", text)
        self.assertNotIn("samples disagree", text)
        text = run("explain", "counted", self.trace["rounded"]).stdout
        self.assertIn("rounded by the counter", text)
        self.assertNotIn("isagree", text)
        signature = next(s for s in self.json(self.trace["rounded"])["signatures"]
                         if s["kernel"] == "counted")
        self.assertTrue(signature["varying"] and signature["rounded"])

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
        for near in done.stderr.split("near: ")[1].split(", "):
            done = run("compare", self.trace["vectors"], self.trace["vectors"], "--fail-if",
                       f"{near.strip()} >= 0")
            self.assertNotEqual(done.returncode, 2, done.stderr)

    def test_gates(self):
        both = ("compare", self.trace["vectors"], self.trace["vectors"], "--fail-if")
        self.assertEqual(run(*both, "total.flop.ratio > 1.01").returncode, 0)
        self.assertEqual(run(*both, "compared_kernels.row_sum.gpu_time_ratio >= 1").returncode, 1)

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
        self.refused(2, "compared_phases, compared_kernels", "compare", *both, "--format", "csv")
        self.refused(2, "--format csv and json only", "compare", *both, "--table",
                     "compared_phases")
        table = self.json("compare", *both, "--table", "compared_kernels")
        self.assertEqual(table["compared_kernels"], kernels)
        self.assertNotIn("compared_phases", table)
        markdown = run("compare", *both, "--format", "markdown").stdout
        self.assertIn("| kernel | change |", markdown)
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
        markdown = run(*train, "--format", "markdown").stdout
        self.assertIn("| by operations | 1e13 FLOP | FLOP of a step x 10 steps |", markdown)
        infer = ("project", "infer", "--forward-flop", "15503M", "--gpu", "K80 board",
                 "--precision", "fp32,fp64")
        rows = list(csv.DictReader(io.StringIO(run(*infer, "--format", "csv").stdout)))
        for row, entry in zip(rows, self.json(*infer)["inference"], strict=True):
            self.assertEqual({k: v for k, v in row.items() if k in ("precision", "source")},
                             {k: entry[k] for k in ("precision", "source")})
            for key in ("peak_flop_per_s", "time_s", "examples_per_s"):
                self.assertEqual(float(row[key]), entry[key])
        self.assertIn("| fp64 | 2.910 TFLOP/s | 5.32749 ms | 187.706 |",
                      run(*infer, "--format", "markdown").stdout)
        self.refused(2, "projection", *train, "--format", "csv", "--table", "kernels")

    def test_each_row_of_phase_parts_can_be_named_by_a_gate(self):
        for part in ("unclear", "products"):
            done = run(self.trace["vectors"], "--fail-if", f"phase_parts.{part}.launches > 0")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_phase_that_a_side_lacks_is_0_launches_and_0_flop_there(self):
        neither = ("compare", self.trace["vectors"], self.trace["vectors"], "--fail-if")
        recompute = "compared_phases.recompute"
        for condition, code in ((f"{recompute}.launches_b > 0", 0), (f"{recompute}.flop_a == 0", 1),
                                (f"{recompute}.launches_b > {recompute}.launches_a", 0)):
            self.assertEqual(run(*neither, condition).returncode, code, condition)
        # 0 / 0 is no number: a gate on it fails, as on any figure that is not known.
        done = run(*neither, f"{recompute}.flop_ratio > 1.01")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"cannot be decided: {recompute}.flop_ratio", done.stderr)
        self.assertEqual(run(*neither, "compared_phases.evaluation.launches_b > 0").returncode,
                         2)  # no rule has it
        # Not among the phases that people see.
        self.assertNotIn("recompute", run(*neither[:-1]).stdout)
        one = self.json("compare", self.trace["vectors"], self.trace["simulated"])
        appeared = by(one, "compared_phases")["backward"]
        self.assertEqual((appeared["change"], appeared["launches_a"], appeared["flop_a"]),
                         ("appeared", 0, 0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
