"""Runs the commands that the documents show, and compares what they print with what the documents
say they print.

Usage: documents_test.py BUILD                   the test
       documents_test.py BUILD --write [PAGE...] writes into the pages what their commands print

page.py says how a page is read. Pages run as on a machine with a GPU: its driver is the simulated
one. Each page has a folder of its own with train.py in it (stand_ins/)."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import page

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import staged  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(sys.argv[1]).resolve()
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
         *sorted((ROOT / "docs").glob("*.md")),
         *(ROOT / folder / "README.md" for folder in (
             "collector/schedule", "tests/bench", "tests/networks", "tools/flopreduce",
             "tools/flopreduce/peaks")),
         ROOT / "tests/hardware/counts.md"]
PAGES = [path for path in PAGES if path.exists()]
# Pages whose figures come from formulas alone: each digit is compared, times too.
EXACT = ("docs/why-numbers-differ.md", "tests/networks/README.md")
TRAINER = BUILD / "lib/flopinj/trainer"


def name_of(path):
    return str(path.relative_to(ROOT))


def sources():
    """Files that may name a page."""
    yield from (ROOT / "tools/dev", ROOT / "pyproject.toml", *ROOT.glob("*.md"))
    for folder in ("collector", "common", "injector", "proto", "python", "tests", "tools"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".cpp", ".h", ".py", ".def", ".md", ".txt"):
                yield path


def commands_of(path):
    return [command for block in page.blocks_of(path.read_text())
            if block.language in ("sh", "console") and block.not_run is None
            for command in block.commands()]


# Pages are written with the settings that a reader has. On a busy machine the first launches of a
# short program would come before its plan.
PATIENT = {"FLOPINJ_PLAN_WAIT_MS": "60000"}


def run_page(commands, parent, settings):
    """What the commands of a page print, in a folder as its reader has it."""
    folder = Path(parent) / "page"
    folder.mkdir()
    for name in ("tests", "examples"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "build").mkdir()
    (folder / "build/dev").symlink_to(BUILD)
    shutil.copy(HERE / "stand_ins/train.py", folder)
    programs = Path(parent) / "bin"
    programs.mkdir()
    shutil.copy(HERE / "stand_ins/torchrun", programs)
    for name, module in (("python", ""), ("python3", ""), ("flopinj", "-m flopinj ")):
        (programs / name).write_text(f"#!/bin/sh\nexec '{sys.executable}' {module}\"$@\"\n")
        (programs / name).chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not re.match("FLOPINJ_|SIMGPU_", k)}
    environment |= {
        "PATH": f"{programs}:{BUILD}/bin:{TRAINER}:{environment['PATH']}",
        "LD_LIBRARY_PATH": f"{BUILD}/lib/flopinj/simgpu",
        "PYTHONPATH": str(staged.stage(Path(parent) / "packages", BUILD)),
        "NO_COLOR": "1", "COLUMNS": "92", "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(folder)
    }
    return page.run(commands, folder, environment | settings, 250)


def may_fail(commands, number):
    return number + 1 < len(commands) and commands[number + 1].text == "echo $?"


class Pages(unittest.TestCase):
    maxDiff = None

    def test_commands_print_what_is_written(self):
        for path in PAGES:
            commands = commands_of(path)
            if not commands:
                continue
            with tempfile.TemporaryDirectory(prefix="flopinj-documents-") as parent:
                done = run_page(commands, parent, PATIENT)
            exact = name_of(path) in EXACT
            for number, (command, (code, printed)) in enumerate(zip(commands, done)):
                with self.subTest(page=name_of(path), line=command.line, command=command.text):
                    if not may_fail(commands, number):
                        self.assertEqual(code, 0, "\n".join(printed))
                    if command.output is not None:
                        if not page.same(command.output, printed, exact):
                            self.assertEqual("\n".join(command.output), "\n".join(printed),
                                             "written anew by --write")

    def test_what_is_not_run_can_be_read(self):
        for path in PAGES:
            for block in page.blocks_of(path.read_text()):
                with self.subTest(page=name_of(path), line=block.line):
                    self.read(block)

    def read(self, block):
        if block.language in ("sh", "console"):
            for command in block.commands():
                done = subprocess.run(["bash", "-n", "-c", command.text], capture_output=True,
                                      text=True, timeout=60, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        elif block.language == "python":
            compile(block.text(), "page", "exec")
        elif block.language == "json":
            json.loads(block.text())
        elif block.language == "yaml" and yaml is not None:
            self.assertTrue(list(yaml.safe_load_all(block.text())))

    def test_no_command_is_outside_of_a_block_that_runs(self):
        for path in PAGES:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                self.assertFalse(line.startswith("    $ "), f"{name_of(path)}:{number}")


    def test_each_says_for_whom_it_is(self):
        for path in (ROOT / "docs").glob("*.md"):
            self.assertRegex(path.read_text(), r"\A# [^\n]+\n\nFor ", name_of(path))

    def test_the_site_has_each(self):
        named = re.findall(r"^ +- (docs/\S+)$", (ROOT / "docs/site/mkdocs.yml").read_text(),
                           re.MULTILINE)
        self.assertEqual(sorted(named), sorted(
            name_of(path) for path in PAGES if path.parent == ROOT / "docs"))

    def test_lines_fit_100_columns(self):
        for path in [*PAGES, ROOT / "proto/FORMAT.md"]:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if not line.startswith("|"):  # a table's row cannot be broken
                    self.assertLessEqual(len(line), 100, f"{name_of(path)}:{number}")


class Links(unittest.TestCase):

    def test_they_lead_to_files_and_headings(self):
        for path in PAGES:
            text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match("https?:", target):
                    continue
                name, _, heading = target.partition("#")
                with self.subTest(page=name_of(path), link=target):
                    file = (path.parent / name) if name else path
                    self.assertTrue(file.exists())
                    if heading:
                        self.assertIn(heading, headings_of(file.read_text()))


    def test_sources_name_pages_and_headings_that_are_there(self):
        for path in sources():
            for page_name, heading in re.findall(r"\b(docs/[\w-]+\.md)(?:#([\w-]+))?",
                                                 path.read_text()):
                with self.subTest(source=name_of(path), page=page_name):
                    self.assertTrue((ROOT / page_name).exists())
                    if heading:
                        self.assertIn(heading, headings_of((ROOT / page_name).read_text()))


class Sample(unittest.TestCase):
    """docs/sample-report.html is the page that flopinj demo writes."""

    def test_it_is_what_the_demo_writes(self):
        self.maxDiff = None
        then, now = parts_of(SAMPLE.read_text()), parts_of(sample(PATIENT))
        for part in now:
            self.assertEqual(then[part], now[part], f"{part}: written anew by --write")


SAMPLE = ROOT / "docs/sample-report.html"


def sample(settings):
    """The demo's page, as on any machine."""
    with tempfile.TemporaryDirectory(prefix="flopinj-documents-") as folder:
        environment = {k: v for k, v in os.environ.items() if not re.match("FLOPINJ_|SIMGPU_", k)}
        subprocess.run([BUILD / "bin/flopinj", "demo"], cwd=folder, check=True, timeout=250,
                       env=environment | settings, capture_output=True)
        text = (Path(folder) / "flopinj-demo.html").read_text()
    text = text.replace(str(BUILD), "/opt/flopinj").replace(folder, "/tmp/d")
    return re.sub(rf"\b{re.escape(socket.gethostname())}\b", "node1", text)


def take_picture():
    """README's picture: the head of the demo's page, where a browser is at hand."""
    browser = shutil.which("chromium")
    if browser is not None:
        subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                        "--window-size=1000,1020", f"--screenshot={ROOT / 'docs/report.png'}",
                        SAMPLE.as_uri()], check=True, timeout=100, capture_output=True)


def parts_of(text):
    """The page without its data, and of these the names: figures differ from run to run."""
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    names = set()

    def walk(value, path):
        if isinstance(value, dict):
            for key, below in value.items():
                walk(below, f"{path}.{key}")
        elif isinstance(value, list):
            for below in value:
                walk(below, path)
        names.add(path)
        if path.endswith((".title", ".heading", ".key")) and isinstance(value, str):
            names.add(f"{path} = {re.sub('[0-9.,]+', '#', value)}")

    whole = json.loads(data[1])
    # A busy machine may be the cause of one.
    whole["sections"] = [one for one in whole["sections"] if one["key"] != "diagnostics"]
    walk(whole, "")
    return {"page": text[:data.start(1)] + text[data.end(1):], "names": sorted(names)}


def headings_of(text):
    """Headings as GitHub makes links of them."""
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }


class Reading(unittest.TestCase):
    TEXT = """Words
```console
$ flopreduce a \\
>   b
one

  two 1.5 ms
$ false

$ echo $?
1
```
<!-- not run: for a reason -->
```sh
other
```
"""

    def test_blocks_and_commands(self):
        first, second = page.blocks_of(self.TEXT)
        self.assertEqual([(c.text, c.line, c.output) for c in first.commands()], [
            ("flopreduce a \\\n  b", 3, ["one", "", "  two 1.5 ms"]), ("false", 8, []),
            ("echo $?", 10, ["1"])
        ])
        self.assertEqual((first.not_run, second.not_run), (None, "for a reason"))
        self.assertEqual([c.text for c in second.commands()], ["other"])
        self.assertTrue(may_fail(first.commands(), 1))
        self.assertFalse(may_fail(first.commands(), 0))
        for bad in ("```sh\nx\n", "```console\nx\n```\n"):
            with self.assertRaises(AssertionError):
                [block.commands() for block in page.blocks_of(bad)]

    def test_commands_share_a_shell(self):
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / "here"
            folder.mkdir()
            commands = [page.Command(text, 1) for text in
                        ("x=3", "(exit $x)", "echo $?", "pwd; echo no >&2")]
            self.assertEqual(page.run(commands, folder, os.environ, 60),
                             [(0, []), (3, []), (0, ["3"]), (0, ["/tmp/d", "no"])])

    def test_what_is_compared(self):
        printed = ["a  1.5 kFLOP  2.000 us  3.1 %", "pid 17 (3.1 kB)", "b 2"]
        self.assertTrue(page.same(["a 1.5 kFLOP 7 ms 4 %", "pid 4 (9 kB)", "b  2"], printed, False))
        self.assertTrue(page.same(["...", "b 2"], printed, False))
        self.assertTrue(page.same(printed, printed, True))
        for wrong in (["a 1.6 kFLOP 7 ms 4 %", "..."], ["b 2"], ["...", "b 3"], [], printed[:2]):
            self.assertFalse(page.same(wrong, printed, False), wrong)
        self.assertFalse(page.same(["a 1.5 kFLOP 7 ms 4 %", "..."], printed, True))


def write(names):
    """Puts what commands print into their pages, where it is not the same already."""
    for path in PAGES:
        if names and name_of(path) not in names:
            continue
        commands = commands_of(path)
        if not commands:
            continue
        with tempfile.TemporaryDirectory(prefix="flopinj-documents-") as parent:
            done = run_page(commands, parent, {})
        lines = path.read_text().splitlines()
        for number, (command, (code, printed)) in reversed(
                list(enumerate(zip(commands, done)))):
            if code and not may_fail(commands, number):
                print(f"{name_of(path)}:{command.line}: exit code {code}", *printed, sep="\n")
            if command.output is None:
                continue
            broken = all(len(line) <= 100 for line in command.output)
            if broken and page.same(command.output, printed, name_of(path) in EXACT):
                continue
            if "..." in command.output:
                print(f"{name_of(path)}:{command.line}: to be done by hand", *printed, sep="\n")
                continue
            at = command.output_line - 1
            lines[at:at + len(command.output)] = printed
        path.write_text("\n".join(lines) + "\n")
    if not names or name_of(SAMPLE) in names:
        SAMPLE.write_text(sample({}))
        take_picture()


if __name__ == "__main__":
    if sys.argv[2:3] == ["--write"]:
        write(sys.argv[3:])
    else:
        unittest.main(argv=sys.argv[:1] + sys.argv[2:])
