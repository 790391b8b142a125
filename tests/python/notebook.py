"""Runs the cells of a notebook in IPython, here, and gives each the outputs that a notebook keeps.

Usage: notebook.py FROM.ipynb TO.ipynb, with a folder for IPYTHONDIR
"""

import base64
import io
import json
import os
import sys
from pathlib import Path

os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # as Jupyter has it

from IPython.core.displayhook import DisplayHook  # noqa: E402
from IPython.core.displaypub import DisplayPublisher  # noqa: E402
from IPython.core.interactiveshell import InteractiveShell  # noqa: E402

outputs = []


def add(kind, data, **more):
    """Text by lines, as notebooks have it."""
    data = {mime: base64.b64encode(value).decode() if isinstance(value, bytes) else
            value if mime.startswith("image/") else value.splitlines(keepends=True)
            for mime, value in data.items()}
    outputs.append({"output_type": kind, "metadata": {}, "data": data, **more})


class Publisher(DisplayPublisher):
    def publish(self, data, *_, **__):
        add("display_data", data)


class Hook(DisplayHook):
    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, *_, **__):
        add("execute_result", format_dict, execution_count=None)

    def finish_displayhook(self):
        pass


def main(read, write):
    book = json.loads(Path(read).read_text(encoding="utf-8"))
    shell = InteractiveShell.instance(displayhook_class=Hook, display_pub_class=Publisher)
    for cell in book["cells"]:
        if cell["cell_type"] != "code":
            continue
        terminal, sys.stdout = sys.stdout, io.StringIO()
        outputs.clear()
        done = shell.run_cell("".join(cell["source"]), store_history=True)
        said, sys.stdout = sys.stdout.getvalue(), terminal
        if not done.success:
            sys.exit(said)
        stream = {"output_type": "stream", "name": "stdout",
                  "text": said.replace("\r\n", "\n").splitlines(keepends=True)}
        cell["outputs"] = [stream, *outputs] if said else list(outputs)
    Path(write).write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
