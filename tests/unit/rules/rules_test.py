"""Rules of the sources that no compiler checks: who may include whom, and how wide lines are."""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MOST_COLUMNS = 100

# Each room may include itself and the rooms after it.
COLLECTOR = ["collector", "collector/writer", "collector/trace", "collector/trace/sink",
             "collector/options", "collector/schedule", "collector/ranges", "collector/identity",
             "collector/base"]
INJECTOR = ["injector", "injector/activity", "injector/graphs", "injector/handles",
            "injector/counters/windows", "injector/counters/access",
            "injector/counters/profiler", "injector/process", "injector/vendor"]
REDUCER = [
    "", "commands", "commands/arguments", "anonymous", "gates", "writers/html", "writers/sql",
    "writers", "sections/screens", "sections/recording", "sections",
    "sections/parts", "passes/summary", "passes", "passes/sequence", "passes/packets",
    "passes/rows",
    "report/builders", "report/operators", "report", "peaks", "phases", "analytic",
    "tables", "reader", "support"
]


def sources(*folders, suffixes=(".h", ".cpp")):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes:
                yield path


def room_of(path):
    return str(path.parent.relative_to(ROOT))


def includes(path):
    return re.findall(r'^\s*#include\s+[<"]([^>"]+)[>"]', path.read_text(), re.M)


class Includes(unittest.TestCase):
    def test_the_reducer_never_includes_the_collector_or_the_injector(self):
        for path in sources("tools/flopreduce"):
            for name in includes(path):
                self.assertFalse(name.startswith(("collector/", "injector/")), f"{path}: {name}")
        for text in (ROOT / "tools/flopreduce").rglob("CMakeLists.txt"):
            self.assertNotIn("flopinj_collector", text.read_text())

    def test_no_room_includes_one_above_it(self):
        # The reducer's sources name each other from its own folder.
        reducer = "tools/flopreduce"
        for rooms, folder, prefix in ((COLLECTOR, "collector", ""), (INJECTOR, "injector", ""),
                                      (REDUCER, reducer, f"{reducer}/")):
            for path in sources(folder):
                room = room_of(path).removeprefix(prefix) if room_of(path) != reducer else ""
                self.assertIn(room, rooms)
                for name in includes(path):
                    other = str(Path(name).parent)
                    if other in rooms:
                        self.assertGreaterEqual(rooms.index(other), rooms.index(room),
                                                f"{path.relative_to(ROOT)} includes {name}")

    def test_the_collector_knows_no_vendor_and_no_injector(self):
        for path in sources("collector"):
            for name in includes(path):
                foreign = name.startswith(("cu", "nv", "injector/", "spdlog/", "google/"))
                self.assertFalse(foreign, f"{path}: {name}")


class Names(unittest.TestCase):
    def test_no_two_types_have_one_name(self):
        # Of two with one name in one namespace, the linker keeps one constructor and destructor.
        places = {}
        for path in sources("collector", "common", "injector", "tools"):
            namespace, unnamed = "", False
            for line in path.read_text().split("\n"):
                if begins := re.match(r"namespace ([\w:]+) {", line):
                    namespace = begins.group(1)
                unnamed = line != "}  // namespace" and (unnamed or line == "namespace {")
                defined = re.match(r"(?:class|struct|enum(?: class)?) (\w+)(?: [^;(]*)? {", line)
                if defined and not unnamed:
                    places.setdefault(f"{namespace}::{defined.group(1)}", set()).add(
                        str(path.relative_to(ROOT)))
        self.assertEqual({name: files for name, files in places.items() if len(files) > 1}, {})


class Advice(unittest.TestCase):
    def test_nobody_is_told_to_install_a_name_of_pypi_that_is_not_ours(self):
        # It is nobody's there, so anybody can give it to a package of his own.
        told = re.compile(r"pip3?\s+install\s+(?:-\S+\s+)*(?:flopinj|it\b)|flopinj\[")
        folders = ("collector", "common", "injector", "proto", "tools", "cmake", "examples",
                   "python", "docs", "tests")
        files = [*ROOT.glob("*.*"), *(path for folder in folders
                                      for path in (ROOT / folder).rglob("*"))]
        self.assertGreater(len(files), 1000)
        found = []
        for path in files:
            if not path.is_file() or path == Path(__file__).resolve():
                continue
            text = path.read_bytes().decode(errors="replace")
            # A literal may go on in another one, and quotes may be between the words.
            text = re.sub(r"""["']\s*\n\s*[frb]?["']|["'`\\]""", "", text)
            found += [f"{path.relative_to(ROOT)}: {said[0]}" for said in told.finditer(text)]
        self.assertEqual(found, [])


class Columns(unittest.TestCase):
    def test_columns_of_a_line(self):
        # A page's own text is no code: a tag of HTML cannot be broken anywhere.
        folders = ("collector", "common", "injector", "proto", "tools", "cmake", "examples",
                   "python", "tests")
        code = (".h", ".cpp", ".cu", ".def", ".py", ".js", ".css", ".proto", ".cmake", ".sh")
        named = ("CMakeLists.txt", "requirements.txt", "cuda-headers.txt", "dev", "run")
        wide = [str(path.relative_to(ROOT))
                for path in sources(*folders, suffixes=(*code, ".txt", ""))
                if path.is_file() and (path.suffix in code or path.name in named)
                and any(len(line) > MOST_COLUMNS for line in path.read_text().splitlines())]
        self.assertEqual(wide, [])


@unittest.skipUnless(shutil.which("clang-format"), "no clang-format here")
class Format(unittest.TestCase):
    def check(self, **variables):
        return subprocess.run([ROOT / "tools/dev", "format", "--check"], cwd=ROOT, text=True,
                              capture_output=True, env=os.environ | variables)

    def test_a_check_without_a_list_of_sources_fails(self):
        done = self.check(GIT_DIR="/nonexistent")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("git does not list the sources", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
