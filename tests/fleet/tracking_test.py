"""flopinj.tracking: TensorBoard, MLflow, Weights & Biases and OpenTelemetry get the figures of a
program that trains, and they are those of flopreduce's report."""

import importlib.util
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "integration"), str(HERE.parent / "python")]
import harness  # noqa: E402
import staged  # noqa: E402
from driver_program import DRIVER  # noqa: E402
from harness import CLIENTS, clean_environment, injected_environment  # noqa: E402

PACKAGES = ("tensorboard", "mlflow", "wandb", "opentelemetry.sdk", "cuda.bindings")
OPTIONS = {"WANDB_SILENT": "true", "GIT_PYTHON_REFRESH": "quiet",
           "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_ALLOW_FILE_STORE": "true"}
PROGRAM = DRIVER + """
import json, os
from flopinj import tracking

tracking.Sampler._MOST_SHARE = 1  # it takes each sample that `every` asks for
begin()

def train(number):
    with flopinj.step(tokens=10):
        for _ in range(100):
            launch(100)
        ok(driver.cuCtxSynchronize())
"""
LOGGED = PROGRAM + """
import mlflow, wandb
from tensorboard.summary import Writer

mlflow.set_tracking_uri("file:mlruns")
writer, run = Writer("board"), mlflow.start_run()
wandb.init(mode="offline", project="p", dir=".")
seen = []
failed = 0

def broken(values, step):
    global failed
    failed += 1
    raise ConnectionError("its server is away")

flopinj.start("t.pb")
with tracking.Log(tracking.tensorboard(writer), tracking.mlflow(), tracking.wandb(), broken,
                  lambda values, step: seen.append(values), every=0.01) as log:
    number = 0
    while sum("flopinj/flop" in values for values in seen) < 3:
        number += 1
        train(number)
        log.step(number)
        wandb.log({"loss": 1 / number})
    flopinj.stop()
assert failed == 1
writer.flush()
wandb.finish()
print(json.dumps({"step": number, "run": run.info.run_id, "values": seen}))
"""
OBSERVED = PROGRAM + """
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

reader = InMemoryMetricReader()
sampler = tracking.opentelemetry(MeterProvider(metric_readers=[reader]), every=0.01)
flopinj.start("t.pb")
assert tracking.sample() == {}, tracking.sample()  # nothing was launched
number = 0
while "flop" not in sampler.values:
    number += 1
    train(number)
flopinj.stop()
sampler.close()
metrics, = (scope.metrics for resource in reader.get_metrics_data().resource_metrics
            for scope in resource.scope_metrics)
print(json.dumps([[metric.name, metric.unit, type(metric.data).__name__,
                   [point.value for point in metric.data.data_points]] for metric in metrics]))
"""
ALONE = """
from flopinj import tracking

def sink(values, step):
    raise AssertionError("nothing is recorded")

with tracking.Log(sink, every=0.01) as log:
    for number in range(5):
        log.step(number)
print(tracking.sample())
"""


def logged(data, block=32768, header=7):
    """Records of a log in LevelDB's format, as a run of Weights & Biases is stored, behind a header
    of the file. Of a record: check sum, size, and whether it is whole (1) or its last part (4)."""
    at, record = header, b""
    while at + header <= len(data):
        if block - at % block < header:
            at += block - at % block
            continue
        size, kind = struct.unpack_from("<HB", data, at + 4)
        record += data[at + header:at + header + size]
        at += header + size
        if kind in (1, 4):
            yield record
            record = b""


class Tracking(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-tracking-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        staged.stage(self.folder / "package", os.environ["FLOPINJ_BUILD"])

    def python(self, code, env):
        done = subprocess.run(
            [sys.executable, "-c", code, CLIENTS / "client_kernels.ptx"], cwd=self.folder,
            env={**env, **OPTIONS, "HOME": str(self.folder),
                 "PYTHONPATH": str(self.folder / "package")}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def recorded(self, code):
        """What the program prints, and the figures of its report."""
        done = self.python(code, injected_environment("unused.pb", FLOPINJ_DORMANT=1))
        self.said = [line for line in done.stderr.splitlines() if line.startswith("flopinj: ")]
        figures = harness.reduce(self.folder / "t.pb")["figures"]
        return json.loads(done.stdout.splitlines()[-1]), figures

    def test_each_tracker_has_the_figures_of_the_report(self):
        out, figures = self.recorded(LOGGED)
        # 200 FLOP a launch. The program has no operators with formulas, so no MFU.
        self.assertEqual(figures["flop"], 200 * 100 * out["step"])
        figures["flop_per_token"] = 2000
        self.assertIsNone(figures["mfu"])
        keys = ("hfu", "flop", "flop_per_s", "flop_per_token", "energy_j", "flop_per_j")
        at_least = figures | {"energy_j": figures["energy_j"] or figures["energy_j_at_least"]}
        expected = {f"flopinj/{key}": at_least[key] for key in keys if at_least[key] is not None}
        self.assertLess({"flopinj/hfu", "flopinj/energy_j"}, set(expected))
        self.assertEqual(out["values"][-1], expected)
        growing = [values["flopinj/flop"] for values in out["values"] if "flopinj/flop" in values]
        self.assertEqual(growing, sorted(growing))
        self.assertNotIn(0, [value for values in out["values"] for value in values.values()])
        self.assertEqual(self.said, ["flopinj: broken gets no more figures: its server is away"])
        last = {"tensorboard": self.of_tensorboard(), "mlflow": self.of_mlflow(out["run"]),
                "wandb": self.of_wandb()}
        for tracker, values in last.items():
            with self.subTest(tracker=tracker):
                self.assertEqual(set(values), set(expected))
                for key, (step, value) in values.items():
                    self.assertAlmostEqual(value / expected[key], 1, places=6)  # 32 bits
                    self.assertIn(step, (out["step"], None))

    def of_tensorboard(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(self.folder / "board"))
        events.Reload()
        found = {}
        for tag in events.Tags()["tensors"]:
            last = events.Tensors(tag)[-1]
            found[tag] = last.step, last.tensor_proto.float_val[0]
        return found

    def of_mlflow(self, run):
        from mlflow.tracking import MlflowClient

        found = {}
        with unittest.mock.patch.dict(os.environ, OPTIONS):
            client = MlflowClient(f"file:{self.folder}/mlruns")
            for key in client.get_run(run).data.metrics:
                last = client.get_metric_history(run, key)[-1]
                found[key] = last.step, last.value
        return found

    def of_wandb(self):
        from wandb.proto import wandb_internal_pb2

        file, = self.folder.glob("wandb/offline-run-*/*.wandb")
        found = {}
        for data in logged(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            for item in record.history.item:
                key = item.key or "/".join(item.nested_key)
                if key.startswith("flopinj/"):
                    found[key] = None, json.loads(item.value_json)
        return found

    def test_opentelemetry_observes_them(self):
        metrics, figures = self.recorded(OBSERVED)
        values = {name: (unit, kind, value) for name, unit, kind, (value,) in metrics}
        self.assertEqual(values["flopinj.flop"], ("{FLOP}", "Sum", figures["flop"]))
        self.assertEqual(values["flopinj.hfu"], ("1", "Gauge", figures["hfu"]))
        self.assertEqual(values["flopinj.flop.per_token"], ("{FLOP}/{token}", "Gauge", 2000))
        energy = figures["energy_j"] or figures["energy_j_at_least"]
        self.assertEqual(values["flopinj.energy"], ("J", "Sum", energy))
        self.assertNotIn("flopinj.mfu", values)

    def test_where_nothing_is_recorded_nothing_is_logged(self):
        self.assertEqual(self.python(ALONE, clean_environment()).stdout, "{}\n")


if __name__ == "__main__":
    missing = [name for name in PACKAGES
               if importlib.util.find_spec(name.split(".")[0]) is None]
    if missing:
        print(f"skipped: not installed: {', '.join(missing)}; `tools/dev test-fleet` brings them")
        sys.exit(77)
    unittest.main(verbosity=2)
