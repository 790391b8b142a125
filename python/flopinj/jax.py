"""Names of the scopes that XLA's kernels come from, for `flopinj report --names`.

    step = jax.jit(train).lower(weights, x, y).compile()
    flopinj.jax.save_names("jax.names", step)

or, without a line in the program, of all that XLA dumps:

    XLA_FLAGS=--xla_dump_to=dump python train.py
    python -m flopinj.jax -o jax.names dump

It reads what XLA prints of a compiled module, and imports neither JAX nor XLA.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from flopinj._programs import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

__all__ = ["save_names"]

_MODULE = re.compile(r"^HloModule ([\w.$-]+)", re.MULTILINE)
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.$-]+) (?:\([^=]*\) -> .*)?\{$")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.$-]+) = (.*)$")
_OPCODE = re.compile(r"([\w-]+)\(")
_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_METADATA = re.compile(r", metadata=\{(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*\}")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition|true_computation|false_computation|"
                     r"branch_computations|called_computations)=(\{[^}]*\}|%?[\w.$-]+)")
_REFERENCE = re.compile(r"%([\w.$-]+)")
# What launches nothing itself.
_SILENT = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all",
           "partition-id", "replica-id"}
# What launches what other computations hold.
_CONTROL = {"call", "while", "conditional", "async-start", "async-update", "async-done"}
_PRODUCTS = {"dot", "convolution", "ragged-dot"}
_TRANSFORM = re.compile(r"(jvp|transpose|vmap)\((.*)\)$")


def save_names(file: str | os.PathLike[str], *modules: Any) -> int:
    """Writes the file for `report --names`, and returns how many names are in it. Where that
    cannot be, a line on stderr says why, and the program goes on.

    A module is what `jax.jit(f).lower(...).compile()` returns, or XLA's text of one.
    """
    texts = (one if isinstance(one, str) else one.as_text() for one in modules)
    try:
        return _write(file, (line for text in texts for line in _lines(text)))
    except Exception as error:  # of a module of another kind or version, or of the file
        say(f"no names of XLA's kernels in {os.fspath(file)}: {error}")
        return 0


def _write(file: str | os.PathLike[str], lines: Iterable[str]) -> int:
    once = list(dict.fromkeys(lines))
    Path(file).write_text("# flopinj report --names FILE: kind, module, name, scopes\n" +
                          "".join(line + "\n" for line in once), encoding="utf-8")
    return len(once)


class _Instruction:
    def __init__(self, name: str, rest: str, root: bool) -> None:
        self.name, self.root = name, root
        shape_end = _balanced(rest) if rest.startswith("(") else rest.find(" ")
        self.text = rest
        opcode = _OPCODE.match(rest[shape_end:].lstrip())
        self.opcode = opcode[1] if opcode else ""
        named = _NAME.search(rest)
        self.scopes = _scopes(re.sub(r"\\(.)", r"\1", named[1])) if named else []
        self.called = [name.lstrip("%") for names in _CALLED.findall(_METADATA.sub("", rest))
                       for name in re.split(r"[,\s]+", names.strip("{}")) if name]


class _Module:
    def __init__(self, text: str) -> None:
        name = _MODULE.search(text)
        if name is None:
            raise ValueError("no module of XLA: its text begins with 'HloModule NAME'")
        self.name = name[1]
        self.entry = ""
        self.computations: dict[str, list[_Instruction]] = {}
        instructions: list[_Instruction] | None = None
        for line in text.splitlines():
            header = _COMPUTATION.match(line)
            if header is not None:
                instructions = self.computations.setdefault(header[2], [])
                if header[1]:
                    self.entry = header[2]
            elif line.startswith("}"):
                instructions = None
            elif instructions is not None:
                found = _INSTRUCTION.match(line)
                if found is not None:
                    instructions.append(_Instruction(found[2], found[3], bool(found[1])))

    def launching(self) -> Iterator[_Instruction]:
        """In the order of the schedule, each once."""
        seen: set[str] = set()
        waiting = [iter(self.computations.get(self.entry, ()))]
        while waiting:
            one = next(waiting[-1], None)
            if one is None:
                waiting.pop()
            elif one.opcode in _CONTROL:
                for name in reversed(one.called):
                    if name not in seen:
                        waiting.append(iter(self.computations.get(name, ())))
                seen.update(one.called)
            elif one.opcode not in _SILENT:
                yield one

    def scopes(self, one: _Instruction) -> list[str]:
        """Of the product inside of a fusion, else what XLA names it by, else of its root."""
        if one.opcode != "fusion":
            return one.scopes
        inside = [part for name in one.called for part in self.computations.get(name, ())]
        products = [part.scopes for part in inside if part.opcode in _PRODUCTS and part.scopes]
        if products:
            return products[0]
        roots = [part.scopes for part in inside if part.root]
        return next(filter(None, [one.scopes, *roots, *(part.scopes for part in inside)]), [])

    def code(self, computation: str, depth: int = 0) -> str:
        """A fused computation without its names: equal for those that XLA makes one kernel of."""
        known: dict[str, str] = {}
        lines = []
        for one in self.computations.get(computation, ()):
            known.setdefault(one.name, f"v{len(known)}")
            text = _METADATA.sub("", one.text)
            lines.append(known[one.name] + _REFERENCE.sub(
                lambda found: known.get(found[1], "?"), text))
            if depth < 4:
                lines += [self.code(name, depth + 1) for name in one.called]
        return "\n".join(lines)


def _balanced(text: str) -> int:
    """Where the bracket that `text` begins with is closed, and one more."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at + 1
    return len(text)


def _scopes(name: str) -> list[str]:
    """`jit(step)/transpose(jvp(mlp))/dense/dot_general` as the scopes around the operation:
    `jit(step)`, `transpose(jvp())`, `mlp`, `dense`. JAX writes a transformation around the first
    scope inside of it."""
    parts, depth, begin = [], 0, 0
    name = name.split(";")[0]  # of several operations that XLA made one of
    for at, letter in enumerate(name):
        depth += (letter in "([") - (letter in ")]")
        if letter == "/" and depth == 0:
            parts.append(name[begin:at])
            begin = at + 1
    scopes = []
    for part in parts:
        transforms, scope = [], part
        while (found := _TRANSFORM.match(scope)) is not None:
            transforms.append(found[1])
            scope = found[2]
        if transforms:
            scopes.append("(".join(transforms) + "()" + ")" * (len(transforms) - 1))
        if scope:
            scopes.append(re.sub(r"[\t\r\n]", " ", scope))
    return scopes


def _common(paths: list[list[str]]) -> list[str]:
    return paths[0][:len(os.path.commonprefix(paths))]


def _lines(text: str) -> Iterator[str]:
    module = _Module(text)
    equal: dict[str, list[tuple[str, list[str]]]] = {}  # fusions by what they compute
    for one in module.launching():
        scopes = module.scopes(one)
        if not scopes:
            continue
        yield "\t".join(("instruction", module.name, one.name, *scopes))
        if one.opcode == "fusion":
            code = "\n".join(map(module.code, one.called))
            # As llvm_ir::SanitizeFunctionName() does.
            kernel = re.sub(r"[^\w$]", "_", one.name, flags=re.ASCII)
            equal.setdefault(code, []).append((kernel, scopes))
    for alike in equal.values():
        common = _common([scopes for _, scopes in alike])
        if common:
            for kernel, _ in alike:
                yield "\t".join(("kernel", module.name, kernel, *common))


def _dumped(names: Iterable[str]) -> Iterator[str]:
    for name in map(Path, names):
        files = sorted(name.glob("*after_optimizations.txt")) if name.is_dir() else [name]
        if not files:
            raise ValueError(f"{name}: no file in it ends in after_optimizations.txt")
        for file in files:
            try:
                yield from _lines(file.read_text(encoding="utf-8", errors="replace"))
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from None


def _main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m flopinj.jax",
        description="Writes the names of scopes that XLA's kernels come from, for flopinj report "
                    "--names.")
    parser.add_argument("dump", nargs="+", metavar="DUMP",
                        help="folder of XLA_FLAGS=--xla_dump_to, or a module's text after "
                             "optimizations")
    parser.add_argument("-o", "--output", required=True, metavar="FILE")
    options = parser.parse_args()
    try:
        count = _write(options.output, _dumped(options.dump))
    except (OSError, ValueError) as error:
        print(f"flopinj.jax: {error}", file=sys.stderr)
        return 2
    print(f"flopinj.jax: {count} names in {options.output}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
