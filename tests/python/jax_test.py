"""flopinj.jax: names of scopes from a module that XLA compiled, and reports by them."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["FLOPINJ_BUILD"]).resolve()
sys.path.insert(0, str(ROOT / "python"))

import flopinj.jax  # noqa: E402

# What JAX's CPU backend made of a training step of an encoder, a scan over checkpointed blocks, a
# head and an optimizer, whose scopes have these names.
STEP = (ROOT / "tests/python/data/jax_step.hlo").read_text()
MODULE = "push\t1\tTSL\tXlaModule:#hlo_module=jit_train,program_id=3#"

# Compiles the example's step and says what it is.
COMPILE = """
import sys
sys.path.insert(0, sys.argv[1])
import jax, jax_mlp, flopinj.jax
from jax import numpy as jnp
weights = [jnp.ones(shape) for shape in ((8, 16), (16, 16), (16, 4))]
step = jax.jit(jax_mlp.train).lower(weights, jnp.ones((4, 8)), jnp.ones((4, 4))).compile()
flopinj.jax.save_names(sys.argv[2], step)
print(step.as_text())
"""


def operations(text):
    """Instruction to JAX's name, of all that are not inside of a fusion or another's helper. Read
    apart from the module under test: by the computations that hold a fusion or the entry."""
    found = {}
    for block in re.split(r"\n\n", text):
        if "fusion(" not in block:
            continue
        for op, opcode, rest in re.findall(r"^ +(?:ROOT )?%([\w.-]+) = \S+ ([\w-]+)\((.*)$", block,
                                           re.MULTILINE):
            name = re.search(r'op_name="([^";]+)', rest)
            if name and "/" in name[1] and opcode in ("fusion", "dot", "copy"):
                found[op] = name[1]
    return found


def phase_of(name):
    if "rematted_computation" in name:
        return "recompute"
    return ("backward" if "transpose(" in name else "forward" if "jvp(" in name else
            "optimizer" if "/optimizer/" in name else "other")


class Jax(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-jax-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.names = self.folder / "names.tsv"

    def report(self, launches, names, *options):
        """Of kernels by name, each with the ranges around it; the n-th has n multiply-adds."""
        lines = ["device\tof a test", "thread\t1\tpython"]
        for number, (kernel, ranges) in enumerate(launches, 1):
            lines.append(f"kernel\t{number}\t0\t{number}\t{kernel}")
            lines += ranges
            lines.append(f"run\t1\t{number}\t100")
            lines += ["pop\t1\tTSL"] * len(ranges)
        trace = self.folder / "jax.pb"
        with open(trace, "wb") as out:
            subprocess.run([BUILD / "test-bin/write_trace"], input="\n".join(lines) + "\n",
                           encoding="utf-8", stdout=out, check=True, timeout=60)
        done = subprocess.run(
            [BUILD / "bin/flopreduce", "--format", "json", "--names", names, *options, trace],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, timeout=60)
        self.said = done.stderr
        return json.loads(done.stdout)

    def check_phases(self, text, names):
        """Ranges as XLA makes them where it says nothing but the instruction."""
        named = operations(text)
        launches = [(f"kernel_{number}", [MODULE, f"push\t1\tTSL\tThunk:#hlo_op={op}#"])
                    for number, op in enumerate(named)]
        expected = dict.fromkeys(map(phase_of, named.values()), 0)
        for number, name in enumerate(named.values(), 1):
            expected[phase_of(name)] += 2 * number
        report = self.report(launches, names)
        self.assertEqual({row["phase"]: row["flop"] for row in report["phases"]
                          if row["launches"]}, expected)
        self.assertEqual(self.said, "")
        return report, named

    def test_phases_and_layers_by_instruction(self):
        count = flopinj.jax.save_names(self.names, STEP)
        self.assertEqual(count, len(self.names.read_text().splitlines()) - 1)
        report, named = self.check_phases(STEP, self.names)
        self.assertLessEqual({"forward", "backward", "recompute", "optimizer"},
                             {row["phase"] for row in report["phases"] if row["launches"]})
        ranges = {row["range"]: row["flop"] for row in report["ranges"]}
        for scope in ("encoder", "blocks", "head"):
            for path, inside in ((f"jit(train)/jvp()/{scope}", f"/jvp({scope})/"),
                                 (f"jit(train)/transpose(jvp())/{scope}",
                                  f"/transpose(jvp({scope}))/")):
                flop = sum(2 * n for n, name in enumerate(named.values(), 1) if inside in name)
                self.assertGreater(flop, 0)
                self.assertEqual(ranges[path], flop, path)

    def test_kernels_by_name_where_a_graph_hides_instructions(self):
        flopinj.jax.save_names(self.names, STEP)
        graph = [MODULE, "push\t1\tTSL\tThunk:#hlo_op=command_buffer#"]
        report = self.report([("ynn_fusion_3", graph), ("wrapped_tanh", graph),
                              ("ynn_fusion", graph), ("sm90_xmma_gemm", graph)], self.names)
        where = {row["range"]: row["flop"] for row in report["ranges"]}
        self.assertEqual(where["jit(train)/transpose(jvp())/head"], 2)
        # One kernel of two fusions that compute alike: what their scopes have in common. The
        # encoder's and the blocks' are in the forward pass; one product of the blocks runs again.
        self.assertEqual(where["jit(train)/jvp()"], 4)
        self.assertEqual(where["jit(train)"], 2 + 4 + 6)
        self.assertEqual({row["phase"]: row["flop"] for row in report["phases"]}["forward"], 4)

    def test_scopes_of_names(self):
        for name, scopes in {
            "jit(f)/dot_general": ["jit(f)"],
            "jit(f)/jvp()/dot_general": ["jit(f)", "jvp()"],
            "jit(f)/jit(main)/transpose(jvp(mlp))/dense/dot_general":
                ["jit(f)", "jit(main)", "transpose(jvp())", "mlp", "dense"],
            "jit(f)/vmap(jvp(a/b))/sin": ["jit(f)", "vmap(jvp())", "a/b"],
            "jit(f)/jvp(jit(silu))/logistic": ["jit(f)", "jvp()", "jit(silu)"],
            "jit(f)/a/mul;jit(f)/b/mul": ["jit(f)", "a"],
            "jit(f)/a (b)/mul[x=(1,) y=2/3]": ["jit(f)", "a (b)"],
            "x": [],
        }.items():
            text = (f'HloModule m\n\nENTRY %main (p: f32[]) -> f32[] {{\n'
                    f'  %p = f32[] parameter(0), metadata={{op_name="p/q"}}\n'
                    f'  ROOT %op.1 = f32[] sine(%p), metadata={{op_name="{name}"}}\n}}\n')
            flopinj.jax.save_names(self.names, text)
            expected = ["\t".join(("instruction", "m", "op.1", *scopes))] if scopes else []
            self.assertEqual(self.names.read_text().splitlines()[1:], expected, name)

    def test_a_fusion_with_a_product_is_of_its_scope(self):
        text = """HloModule jit_f, entry_computation_layout={()->f32[]}

fused (a: f32[4,4], b: f32[4,4]) -> f32[4,4] {
  a = f32[4,4]{1,0} parameter(0)
  b = f32[4,4]{1,0} parameter(1)
  dot.1 = f32[4,4]{1,0} dot(a, b), metadata={op_name="jit(f)/first/dot_general"}
  ROOT tanh.1 = f32[4,4]{1,0} tanh(dot.1), metadata={op_name="jit(f)/second/tanh"}
}

ENTRY main (x: f32[4,4]) -> (f32[4,4], /*index=1*/f32[4,4]) {
  x = f32[4,4]{1,0} parameter(0)
  gemm_fusion_dot.7 = f32[4,4]{1,0} fusion(x, x), kind=kCustom, calls=fused, \
metadata={op_name="jit(f)/second/tanh"}
  custom-call.1 = (f32[4,4]{1,0}, s8[64]{0}) custom-call(x), \
custom_call_target="__cublas$gemm", metadata={op_name="jit(f)/third/dot_general"}
  ROOT t = (f32[4,4]{1,0}, /*index=1*/f32[4,4]{1,0}) tuple(x, x)
}
"""
        flopinj.jax.save_names(self.names, text)
        self.assertEqual(self.names.read_text().splitlines()[1:],
                         ["instruction\tjit_f\tgemm_fusion_dot.7\tjit(f)\tfirst",
                          "instruction\tjit_f\tcustom-call.1\tjit(f)\tthird",
                          "kernel\tjit_f\tgemm_fusion_dot_7\tjit(f)\tfirst"])

    def test_a_wrong_file_is_one_line(self):
        command = [sys.executable, "-m", "flopinj.jax", "-o", self.names]
        wrong = self.folder / "wrong.txt"
        wrong.write_text("no module")
        for given, words in ((self.folder, "no file in it ends in after_optimizations.txt"),
                             (wrong, "wrong.txt: no module of XLA"),
                             (self.folder / "none", "No such file")):
            done = subprocess.run([*command, given], text=True, capture_output=True, timeout=60,
                                  env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
            self.assertEqual(done.returncode, 2)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(words, done.stderr)

    def test_names_of_another_program(self):
        self.names.write_text("kernel\t-\tother\tscope\n")
        report = self.report([("mine", [MODULE])], self.names)
        self.assertIn("--names: no launch has one of the names", self.said)
        self.assertEqual(report["figures"]["launches"], 1)

    def test_jax_itself(self):
        """A module as the JAX at hand compiles it, by the call and from a dump."""
        if importlib.util.find_spec("jax") is None:
            self.skipTest("no jax; `tools/dev test-frameworks` brings it")
        dump = self.folder / "dump"
        env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT / "python"),
               "XLA_FLAGS": f"--xla_dump_to={dump}"}
        text = subprocess.run([sys.executable, "-c", COMPILE, ROOT / "examples", self.names],
                              env=env, text=True, stdout=subprocess.PIPE, check=True,
                              timeout=300).stdout
        self.check_phases(text, self.names)
        dumped = self.folder / "dumped.tsv"
        subprocess.run([sys.executable, "-m", "flopinj.jax", "-o", dumped, dump], env=env,
                       stderr=subprocess.PIPE, check=True, timeout=60)
        self.assertLessEqual(set(self.names.read_text().splitlines()),
                             set(dumped.read_text().splitlines()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
