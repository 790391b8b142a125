#!/usr/bin/env python3
"""flopreduce anonymize on recorded streams: every number of the report stays, no name of the
user's does.

Usage: anonymous_test.py BUILD"""

import json
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True

import as_gpu  # noqa: E402
import compare  # noqa: E402

HERE = Path(__file__).resolve().parent
STREAMS = ("cnn_user_ranges", "own_function", "lightning", "made_up_deepspeed",
           "made_up_jax", "made_up_tensorflow", "made_up_tensorflow_plugins",
           "gpt_checkpoint_reentrant", "ddp", "hf_llama", "hf_mixtral", "mlp_closure")
DATA = HERE.parent / "data/old"
GOLDEN = [HERE.parent / f"golden/{name}.pb" for name in ("simulated", "training", "other_rank")]
# What says whose the trace is.
TEXTS = {
    "hostname", "host", "process", "command_line", "program", "message", "file", "session",
    "session_id", "uuid", "stable_hash", "code_hash"
}


def numbers(value, key=""):
    """Every number of a report with its key, in lists of any order; texts are left out."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name not in TEXTS:
                yield from numbers(member, f"{key}.{name}")
    elif isinstance(value, list):
        for element in value:
            yield from numbers(element, key)
    elif not isinstance(value, str) or value.replace("-", "").isdigit():
        yield key, value


class Anonymous(unittest.TestCase):
    build = None

    def run_flopreduce(self, *arguments, code=0):
        done = subprocess.run([self.build / "bin/flopreduce", *map(str, arguments)],
                              capture_output=True, check=False, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done

    def report(self, trace):
        return json.loads(self.run_flopreduce("--format", "json", trace).stdout)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-anonymous-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.key = self.folder / "key"
        self.key.write_bytes(b"sixteen bytes or more")

    def anonymous(self, trace, name="shown.pb", *options):
        out = self.folder / name
        self.run_flopreduce("anonymize", "--key-file", self.key, "--force", "-o", out, *options,
                            trace)
        return out

    def stream(self, name, replace=()):
        gpu = as_gpu.convert(HERE / "streams" / f"{name}.jsonl.xz")
        for old, new in replace:
            gpu.lines = [line.replace(old, new) for line in gpu.lines]
        trace = self.folder / f"{name}.pb"
        compare.write_trace(self.build, gpu, trace)
        return trace

    def test_every_number_stays(self):
        traces = [self.stream(name) for name in STREAMS] + sorted(DATA.glob("*.pb")) + GOLDEN
        self.assertGreater(len(traces), len(STREAMS))
        for trace in traces:
            with self.subTest(trace=trace.name):
                before, after = (Counter(numbers(self.report(t)))
                                 for t in (trace, self.anonymous(trace)))
                self.assertEqual(before - after, Counter())
                self.assertEqual(after - before, Counter())

    def test_damaged_traces_keep_what_is_whole(self):
        for name in ("killed", "damaged"):
            trace, out = DATA.parents[1] / f"golden/{name}.pb", self.folder / "shown.pb"
            done = self.run_flopreduce("anonymize", "--force", "-o", out, trace, code=3)
            self.assertIn(b"damaged parts are left out", done.stderr)
            totals = []
            for path in (trace, out):
                done = subprocess.run([self.build / "bin/flopreduce", "--format", "json", path],
                                      capture_output=True, check=False, timeout=60)
                totals.append(json.loads(done.stdout)["figures"])
                del totals[-1]["partial"]
            self.assertEqual(*totals)

    def test_no_name_of_the_users_stays(self):
        # Whatever public names are around them in a mangled name.
        secret = (("layer", "zebra"), ("addmm_kernel", "_ZN2at6native13quagga_kernelEv"),
                  ("relu_kernel", "_ZN6thrust6deviceI14MyOkapiFunctorEEvT_"))
        for trace in (self.stream("cnn_user_ranges", secret), DATA / "cnn-pytorch.pb"):
            before, out = trace.read_bytes(), self.anonymous(trace).read_bytes()
            words = {b"zebra", b"quagga", b"Okapi"}
            for process in self.report(trace)["processes"]:
                words |= {w.encode() for w in (process["hostname"],
                                               *process["command_line"].split())}
            words = {w for w in words - {b"host"} if len(w) > 3 and w in before}
            self.assertTrue(words)
            for word in words:
                self.assertNotIn(word, out)

    def test_what_is_asked_for_stays(self):
        trace = DATA / "cnn-pytorch.pb"
        names = {k["kernel"] for k in self.report(trace)["kernels"]}
        ranges = {r["range"] for r in self.report(trace)["ranges"]}
        kept = self.report(self.anonymous(trace, "k.pb", "--keep-kernels"))
        self.assertEqual({k["kernel"] for k in kept["kernels"]}, names)
        kept = self.report(self.anonymous(trace, "r.pb", "--keep-ranges"))
        self.assertEqual({r["range"] for r in kept["ranges"]}, ranges)
        self.assertNotEqual({k["kernel"] for k in kept["kernels"]}, names)

    def test_pseudonyms_are_those_of_the_key(self):
        trace = DATA / "cnn-pytorch.pb"
        first = self.anonymous(trace, "first.pb").read_bytes()
        self.assertEqual(self.anonymous(trace, "again.pb").read_bytes(), first)
        self.key.write_bytes(b"another one of sixteen bytes")
        self.assertNotEqual(self.anonymous(trace, "other.pb").read_bytes(), first)
        out = self.folder / "random"
        drawn = []
        for _ in range(2):
            self.run_flopreduce("anonymize", "--force", "-o", out, trace)
            drawn.append(out.read_bytes())
        self.assertNotEqual(*drawn)

    def test_ranks_are_still_joined(self):
        # A summary of what was made anonymous with one key has the figures of the summary.
        traces = [DATA / "cnn-pytorch.pb", DATA / "mlp-plain.pb"]
        shown = [self.anonymous(t, t.name) for t in traces]
        before, after = (Counter(numbers(json.loads(
            self.run_flopreduce("--format", "json", *ts).stdout))) for ts in (traces, shown))
        self.assertEqual(before, after)

    def test_bad_keys_are_refused(self):
        short = self.folder / "short"
        short.write_bytes(b"short")
        for key in (short, self.folder / "none"):
            done = self.run_flopreduce("anonymize", "--key-file", key, "-o", self.folder / "x",
                                       DATA / "mlp-plain.pb", code=2)
            self.assertIn(b"at least 16 random bytes", done.stderr)
        self.assertFalse((self.folder / "x").exists())


if __name__ == "__main__":
    Anonymous.build = Path(sys.argv.pop(1)).resolve()
    unittest.main()
