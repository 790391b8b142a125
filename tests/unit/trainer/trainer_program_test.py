"""The trainer as a program, on the simulated GPU.

Usage: trainer_program_test.py TRAINER SIMGPU_FOLDER [unittest arguments]
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

TRAINER = ""
SIMGPU = ""

WEIGHTS = re.compile(r"^weights ([0-9a-f]{16})$")
LINE = re.compile(r"^(?:worker (\d+) )?step (\d+) loss (\S+)$")


def run(*arguments, simgpu=True):
    environment = dict(os.environ)
    environment["LD_LIBRARY_PATH"] = SIMGPU if simgpu else ""
    result = subprocess.run(
        [TRAINER, *arguments], env=environment, capture_output=True, text=True, timeout=240)
    # What the simulated driver has to say, such as why it refuses an image, is not the trainer's.
    result.stderr = "".join(
        line for line in result.stderr.splitlines(True) if not line.startswith("simgpu: "))
    return result


def losses(result):
    """{worker: {step: loss as printed}}; worker 0 where none is named."""
    by_worker = {}
    *lines, last = result.stderr.splitlines()
    assert WEIGHTS.match(last), f"the last line on stderr is not the weights' hash: {last}"
    for line in lines:
        match = LINE.match(line)
        assert match, f"unexpected line on stderr: {line}"
        worker, step, loss = match.groups()
        by_worker.setdefault(int(worker or 0), {})[int(step)] = loss
    return by_worker


class Training(unittest.TestCase):
    def train(self, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return losses(result)

    def test_loss_falls_in_every_mode_and_modes_agree_to_the_last_bit(self):
        for model in ("mlp", "cnn"):
            plain = self.train("--model", model, "--mode", "plain")
            self.assertEqual(list(plain[0]), [1, 5, 10, 15, 20])
            self.assertLess(float(plain[0][20]), 0.6 * float(plain[0][1]), model)
            for mode in ("autograd-thread", "graph"):
                with self.subTest(model=model, mode=mode):
                    self.assertEqual(self.train("--model", model, "--mode", mode), plain)
            with self.subTest(model=model, mode="streams"):
                workers = self.train("--model", model, "--mode", "streams", "--workers", "3")
                self.assertEqual(sorted(workers), [0, 1, 2])
                self.assertEqual(workers[0], plain[0])
                for worker in (1, 2):
                    self.assertNotEqual(workers[worker], plain[0])
                    self.assertLess(
                        float(workers[worker][20]), 0.6 * float(workers[worker][1]))

    def test_options_change_what_they_name(self):
        base = self.train("--steps", "5")
        self.assertEqual(self.train("--steps", "5", "--norange"), base)
        for option, value in (("--seed", "2"), ("--lr", "0.01"), ("--batch", "16"),
                              ("--momentum", "0.9")):
            with self.subTest(option=option):
                self.assertNotEqual(self.train("--steps", "5", option, value)[0][5], base[0][5])
        self.assertEqual(
            list(self.train("--steps", "5", "--log-every", "2")[0]), [1, 2, 4, 5])

    def weights(self, *arguments):
        return WEIGHTS.match(run("--steps", "5", *arguments).stderr.splitlines()[-1]).group(1)

    def test_the_hash_of_the_weights_is_that_of_the_numbers(self):
        for model in ("mlp", "cnn"):
            plain = self.weights("--model", model)
            for same in ("plain", "autograd-thread", "graph"):
                self.assertEqual(self.weights("--model", model, "--mode", same), plain)
            for other in (("--seed", "2"), ("--lr", "0.100001"), ("--momentum", "0.9"),
                          ("--batch", "16")):
                self.assertNotEqual(self.weights("--model", model, *other), plain, other)
        streams = [self.weights("--mode", "streams", "--workers", n) for n in ("2", "2", "3")]
        self.assertEqual(streams[0], streams[1])
        self.assertNotEqual(streams[0], streams[2])

    def test_few_steps_in_graph_mode_need_no_graph(self):
        for steps in ("1", "3", "4"):
            with self.subTest(steps=steps):
                self.assertEqual(
                    self.train("--steps", steps, "--mode", "graph"),
                    self.train("--steps", steps))


class Gpt(unittest.TestCase):
    SMALL = ("--model", "gpt", "--layers", "1", "--context", "32", "--vocabulary", "32",
             "--batch", "2")

    def train(self, *arguments):
        """What stderr says: losses and the weights' hash."""
        result = run(*self.SMALL, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    @unittest.skipIf(os.environ.get("FLOPINJ_SANITIZE"), "arithmetic for a minute")
    def test_loss_falls_from_that_of_guessing_to_that_of_the_rule(self):
        loss = {step: float(text) for step, text in losses(run("--model", "gpt"))[0].items()}
        self.assertAlmostEqual(loss[1], math.log(64), delta=0.1)
        self.assertLess(loss[20], 0.75 * loss[1])
        loss = losses(run(*self.SMALL, "--steps", "150", "--log-every", "150"))[0]
        self.assertLess(float(loss[150]), 1)

    def test_modes_and_checkpointing_agree_to_the_last_bit(self):
        plain = self.train("--steps", "6")
        for arguments in (("--mode", "autograd-thread"), ("--mode", "graph"), ("--checkpoint",),
                          ("--ranges", "pytorch", "--checkpoint"), ("--norange",)):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.train("--steps", "6", *arguments), plain)
        workers = losses(run(*self.SMALL, "--steps", "6", "--mode", "streams", "--workers", "2"))
        self.assertEqual(workers[0][6], re.search(r"step 6 loss (\S+)", plain)[1])
        self.assertNotEqual(workers[1], workers[0])

    def test_micro_batches_are_one_batch_but_for_rounding(self):
        """Sums run in another order: the last bits differ."""
        whole, parts = (
            losses(run(*self.SMALL[:-2], "--steps", "1", *arguments))[0][1]
            for arguments in (("--batch", "4"), ("--batch", "2", "--accumulate", "2")))
        self.assertAlmostEqual(float(whole), float(parts), places=4)

    def test_sizes_that_fill_no_tile_are_refused(self):
        for option, value, named in (("--width", "48", "--width"), ("--heads", "4", "--width"),
                                     ("--context", "40", "--context"),
                                     ("--vocabulary", "50", "--vocabulary"),
                                     ("--context", "65536", "--batch")):
            with self.subTest(option=option):
                result = run("--model", "gpt", option, value, simgpu=False)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(len(result.stderr.splitlines()), 1)
                self.assertIn(named, result.stderr)

    def test_shapes_count_the_parameters(self):
        result = run("--model", "gpt", "--print-shapes", "--steps", "0", "--layers", "3", "--width",
                     "128", simgpu=False)
        shapes = json.loads(result.stdout)
        tables = (64 + 64 + 64) * 128  # tokens, positions, head
        self.assertEqual(shapes["parameters"], tables + 3 * (12 * 128**2 + 4 * 128) + 2 * 128)


class Shapes(unittest.TestCase):
    def test_layers_fit_together(self):
        for model in ("mlp", "cnn"):
            with self.subTest(model=model):
                result = run("--model", model, "--print-shapes", "--steps", "0", simgpu=False)
                self.assertEqual(result.returncode, 0, result.stderr)
                network = json.loads(result.stdout)
                size = size_of(network["input"])
                for layer in network["layers"]:
                    self.assertEqual(size_of(layer["in"]), size, layer)
                    size = size_of(layer["out"])
                self.assertEqual(size, network["classes"])
                self.assertFalse(network["layers"][0]["input_gradient"])
                self.assertTrue(all(l["input_gradient"] for l in network["layers"][1:]))

    def test_shapes_and_training_do_not_mix_on_stdout(self):
        result = run("--print-shapes", "--steps", "2", "--batch", "4")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["batch"], 4)
        self.assertEqual(list(losses(result)[0]), [1, 2])


def size_of(shape):
    if isinstance(shape, int):
        return shape
    channels, height, width = shape
    return channels * height * width


class Failures(unittest.TestCase):
    def check_one_line(self, result, code, *words):
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("trainer: "), result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_no_driver(self):
        with tempfile.TemporaryDirectory() as folder:
            # A file that is no library hides a driver that the machine may have.
            with open(os.path.join(folder, "libcuda.so.1"), "w", encoding="ascii") as file:
                file.write("none")
            environment = dict(os.environ, LD_LIBRARY_PATH=folder)
            result = subprocess.run(
                [TRAINER], env=environment, capture_output=True, text=True, timeout=60)
        self.check_one_line(result, 1, "no CUDA driver", "install the NVIDIA driver")

    def test_no_kernels(self):
        self.check_one_line(run("--kernels", "/nowhere/kernels.ptx"), 1,
                            "/nowhere/kernels.ptx", "CUDA_ERROR_FILE_NOT_FOUND")
        self.check_one_line(run("--kernels", TRAINER), 1, TRAINER, "CUDA_ERROR_")

    def test_bad_arguments(self):
        for arguments in (["--model", "rnn"], ["--steps", "many"], ["--batch", "0"], ["--what"],
                          ["--mode", "fast"]):
            with self.subTest(arguments=arguments):
                self.check_one_line(run(*arguments), 2, arguments[0], "--help")


if __name__ == "__main__":
    TRAINER, SIMGPU = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
