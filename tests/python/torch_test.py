"""flopinj.torch.annotate: what NVTX is told of a training with PyTorch, on the CPU.

The calls are written down by the recorder of tests/frameworks/record.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

import staged

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["FLOPINJ_BUILD"]).resolve()

PROGRAM = """
import ctypes, os, sys
import torch
import flopinj.torch
from torch.utils.checkpoint import checkpoint

torch.cuda.synchronize = lambda *_: None  # there is no GPU
log = os.environ.get("NVTX_INJECTION64_PATH")
note = ctypes.CDLL(log).nvtx_log_note if log else lambda text: None
torch.manual_seed(0)

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.pool = torch.nn.AvgPool2d(2)
        self.body = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.ReLU())
        self.fc = torch.nn.Linear(16, 10)

    def forward(self, x):
        large = x.max().item() > 1e9
        x = self.pool(self.conv(x)).flatten(1)
        if CHECKPOINTED:
            x = checkpoint(self.body, x, use_reentrant=False)
        else:
            x = self.body(x)
        if large:
            raise ValueError("too large")
        return self.fc(x)

CHECKPOINTED = "checkpoint" in sys.argv
model = Network()
trained = torch.nn.DataParallel(model) if "wrapped" in sys.argv else model
if "compiled" in sys.argv:
    model.body = torch.compile(model.body, backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
annotation = flopinj.torch.annotate(trained, steps=2)
for step in range(4):
    note(f"step {step}".encode())
    if "failing" in sys.argv and step == 1:
        try:
            trained(torch.full((4, 3, 8, 8), 1e20))
        except ValueError:
            pass
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(trained(torch.randn(4, 3, 8, 8)),
                                      torch.tensor([1, 2, 3, 4])).backward()
    optimizer.step()
note(b"end")
assert not annotation.active or not log
assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())
print(sum(p.double().sum().item() for p in model.parameters()))
if log:
    ctypes.CDLL(log).nvtx_log_flush()
"""

# Knows nothing of flopinj: `flopinj run --torch` puts the hook into PYTHONPATH.
UNCHANGED = """
import importlib.util
assert importlib.util.find_spec("torch") is not None  # looked for before it is imported
import sys
assert "torch" not in sys.modules and "flopinj" not in sys.modules
import ctypes, os, torch
assert torch.__spec__.loader is torch.__loader__ and torch.__file__
torch.cuda.synchronize = lambda *_: None  # there is no GPU
log = os.environ.get("NVTX_INJECTION64_PATH")
note = ctypes.CDLL(log).nvtx_log_note if log else lambda text: None
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
network.eval()(torch.zeros(1, 4))  # does not train
network.train()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(23):
    note(f"step {step}".encode())
    network(torch.ones(2, 4)).sum().backward()
    optimizer.step()
print(network[0].weight.sum().item(), sys.modules.get("own_site") is not None)
if log:
    ctypes.CDLL(log).nvtx_log_flush()
"""

CONV = "Conv2d(3, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))"
POOL = "AvgPool2d(kernel_size=2, stride=2, padding=0)"


LIGHTNING = """
import ctypes, os
import flopinj.callbacks
import lightning
import torch

torch.cuda.synchronize = lambda *_: None  # there is no GPU
log = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])

class Network(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))

    def training_step(self, batch, index):
        log.nvtx_log_note(f"step {index}".encode())
        return self.net(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

data = torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2)
lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                  enable_progress_bar=False, enable_model_summary=False,
                  callbacks=[flopinj.callbacks.lightning(steps=2)]).fit(Network(), data)
log.nvtx_log_note(b"end")
log.nvtx_log_flush()
"""
HUGGING_FACE = """
import ctypes, os, tempfile
import flopinj.callbacks
import torch
import transformers

torch.cuda.synchronize = lambda *_: None  # there is no GPU
log = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
        self.steps = 0

    def forward(self, x, labels=None):
        log.nvtx_log_note(f"step {self.steps}".encode())
        self.steps += 1
        return {"loss": self.net(x).sum()}

with tempfile.TemporaryDirectory() as folder:
    options = transformers.TrainingArguments(
        output_dir=folder, max_steps=4, per_device_train_batch_size=2, use_cpu=True,
        report_to=[], save_strategy="no", disable_tqdm=True, remove_unused_columns=False)
    transformers.Trainer(Network(), options, train_dataset=[{"x": torch.ones(4)}] * 8,
                         callbacks=[flopinj.callbacks.hugging_face(steps=2)]).train()
log.nvtx_log_note(b"end")
log.nvtx_log_flush()
"""


def has(name):
    return unittest.skipIf(importlib.util.find_spec(name) is None, f"not installed: {name}")


class Recorded(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-torch-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        staged.stage(cls.folder / "package", BUILD)
        cls.recorder = cls.folder / "nvtx_log.so"
        include = next(path for path in map(Path, sys.path)
                       for path in path.glob("nvidia/**/include/nvtx3")).parent
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", f"-I{include}", "-o", cls.recorder,
                        ROOT / "tests/frameworks/record/nvtx_log.c"], check=True)

    def train(self, *arguments, injected=True, program=PROGRAM, before=""):
        """What the program prints, and the calls: (step, word, name). `before`: of PYTHONPATH."""
        log = self.folder / "log"
        env = {k: v for k, v in os.environ.items() if not k.startswith("FLOPINJ_")}
        env["PYTHONPATH"] = before + str(self.folder / "package")
        if injected:
            env |= {"NVTX_INJECTION64_PATH": str(self.recorder), "FRAMEWORKS_NVTX_LOG": str(log)}
        done = subprocess.run([sys.executable, "-c", program, *arguments], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        calls, step, depth = [], "", Counter()
        for line in log.read_text().splitlines() if injected else ():
            word, thread, *rest = line.split("\t")
            if word == "note":
                step = rest[0]
            elif word in ("push", "pop"):
                depth[thread] += 1 if word == "push" else -1
                self.assertGreaterEqual(depth[thread], 0)
                calls.append((step, word, rest[1] if word == "push" else ""))
        self.assertEqual(set(depth.values()) - {0}, set())
        return done.stdout, calls

    def ranges(self, calls, *steps):
        """Ranges of modules, and how many of each."""
        return Counter(name for step, word, name in calls
                       if word == "push" and step in steps and
                       (name in ("forward", CONV, POOL) or name.startswith("layer:")))


class Annotated(Recorded):

    MODULES = Counter(["forward", "layer:conv", CONV, "layer:pool", POOL, "layer:body",
                       "layer:body.0", "layer:body.1", "layer:fc"])

    def test_modules_and_operators_have_ranges_in_the_first_steps(self):
        _, calls = self.train()
        for step in ("step 0", "step 1"):
            self.assertEqual(self.ranges(calls, step), self.MODULES)
            operators = [name for at, word, name in calls if at == step and "sizes = [[" in name]
            self.assertTrue(any(name.startswith("aten::conv2d, ") for name in operators))
        self.assertEqual(self.ranges(calls, "step 2", "step 3"), Counter())

    def test_after_them_nothing_is_pushed(self):
        _, calls = self.train()
        # The first forward pass after the last step takes the ranges away.
        late = [call for call in calls if call[0] in ("step 2", "step 3")]
        self.assertEqual([name for _, _, name in late if name.startswith("aten::conv")], [])
        self.assertEqual([call for call in late if call[0] == "step 3"], [])

    def test_training_is_as_without_ranges(self):
        self.assertEqual(self.train()[0], self.train(injected=False)[0])

    def test_names_are_those_of_the_model_inside_of_a_wrapper(self):
        _, calls = self.train("wrapped")
        self.assertEqual(self.ranges(calls, "step 0"), self.MODULES)

    def test_a_forward_pass_that_fails_leaves_no_range_open(self):
        _, calls = self.train("failing")
        failed = self.MODULES - Counter(["layer:fc"])
        self.assertEqual(self.ranges(calls, "step 1"), self.MODULES + failed)

    def test_checkpointed_modules_run_twice(self):
        _, calls = self.train("checkpoint")
        again = Counter(["layer:body.0", "layer:body.1", "layer:body"])
        self.assertEqual(self.ranges(calls, "step 0"), self.MODULES + again)

    def test_inside_of_a_compiled_region_there_are_no_modules(self):
        _, calls = self.train("compiled")
        inside = Counter(["layer:body.0", "layer:body.1"])
        self.assertEqual(self.ranges(calls, "step 0"), self.MODULES - inside)

    def test_a_script_that_knows_nothing_of_it(self):
        own = self.folder / "own"
        own.mkdir(exist_ok=True)
        (own / "sitecustomize.py").write_text("import own_site")
        (own / "own_site.py").write_text("")
        hook = f"{BUILD}/lib/flopinj/torch:{own}:"
        printed, calls = self.train(program=UNCHANGED, before=hook)
        modules = Counter({"forward": 1, "layer:0": 1, "layer:1": 1, "layer:2": 1})
        # In its first forward pass the outermost module runs already.
        self.assertEqual(self.ranges(calls, "step 0"), modules - Counter(["forward"]))
        for step in (1, 19):
            self.assertEqual(self.ranges(calls, f"step {step}"), modules)
        self.assertEqual(self.ranges(calls, "step 20", "step 21", "step 22", ""), Counter())
        self.assertTrue(any(name.startswith("aten::linear, ") for _, _, name in calls))
        without, _ = self.train(program=UNCHANGED, before=hook, injected=False)
        self.assertEqual(printed, without)
        self.assertTrue(printed.endswith("True\n"), printed)  # Python's own sitecustomize has run


class Callbacks(Recorded):

    def check(self, program):
        _, calls = self.train(program=program)
        layers = Counter(["layer:net", "layer:net.0", "layer:net.1"])
        for step in ("step 0", "step 1"):
            self.assertEqual(self.ranges(calls, step) & layers, layers, step)
        self.assertEqual(self.ranges(calls, "step 2", "step 3", "end"), Counter())
        self.assertEqual([name for _, word, name in calls if name == "step"], ["step"] * 4)
        self.assertTrue(any(name.startswith("aten::linear, ") for _, _, name in calls))

    @has("lightning")
    def test_of_lightning(self):
        self.check(LIGHTNING)

    @has("transformers")
    def test_of_hugging_face(self):
        self.check(HUGGING_FACE)


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("skipped: torch is not installed")
        sys.exit(77)
    unittest.main(verbosity=2)
