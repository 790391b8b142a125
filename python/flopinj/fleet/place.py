"""A folder anywhere: on this machine, or in an object store, by fsspec."""

from __future__ import annotations

import os
import re
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from flopinj._programs import Error, install

#: Names that lists and messages have as they are.
_PLAIN = re.compile(r"[A-Za-z0-9_./+@=,-]+")
#: What a file system says of a file that changes with its content, the best first.
_VERSIONS = ("ETag", "etag", "md5Hash", "contentHash", "mtime", "LastModified", "last_modified",
             "updated", "modified", "created")
#: Here a file appears when it is whole. Elsewhere it is written beside its place and moved.
_WHOLE_AT_ONCE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"}


@dataclass(frozen=True, order=True)
class File:
    name: str  # below the folder
    size: int
    version: str
    modified: datetime | None = field(default=None, compare=False)


class Place:
    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError:
            raise Error(f"needs fsspec: {install('fleet')}", 1) from None
        try:
            self.fs, root = fsspec.core.url_to_fs(os.fspath(url))
        except (ImportError, ValueError) as error:  # no such protocol, or its package is missing
            raise Error(f"{url}: {error}", 2) from None
        self.root = root.rstrip("/")
        kinds = self.fs.protocol
        self.kinds = {kinds} if isinstance(kinds, str) else set(kinds)

    @property
    def is_local(self) -> bool:
        return bool(self.kinds & {"file", "local"})

    def path(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def url(self, name: str) -> str:
        path = self.path(name)
        return path if self.is_local else str(self.fs.unstrip_protocol(path))

    def files(self, folder: str = "", without: Place | None = None,
              problem: Callable[[str, str], None] = lambda name, why: None) -> list[File]:
        """All that are below, in the order of their names; but for another place there. What is no
        file, or cannot be looked at, goes to problem()."""
        left_out = f"{without.root}/" if without and without.kinds == self.kinds else "\0"
        path = self.path(folder)
        self.fs.invalidate_cache()
        try:
            found = self.fs.find(path, detail=True) if not self.is_local else dict(
                _walk(path or "/", lambda name, why: problem(name[len(self.root) + 1:], why)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(
            File(name[len(self.root) + 1:], info["size"] or 0, _version(info), _modified(info))
            for name, info in found.items()
            if len(name) > len(self.root) and not name.startswith(left_out))

    def starting(self, folder: str, words: str) -> list[str]:
        """Files right in the folder whose names start so."""
        try:
            found = self.fs.ls(self.path(folder), detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = (str(name).rpartition("/")[2] for name in found)
        return sorted(f"{folder}/{name}" for name in names if name.startswith(words))

    def get(self, name: str, to: str) -> str:
        """The file here: where it is, if its name is plain, or by a link; else a copy."""
        if self.is_local:
            if _PLAIN.fullmatch(self.path(name)):
                return self.path(name)
            os.symlink(self.path(name), to)
        else:
            self.fs.get_file(self.path(name), to)
        return to

    def put(self, file: str, name: str) -> None:
        """Makes NAME be what FILE is, at once: nobody ever sees a part of it."""
        path = self.path(name)
        if self.kinds & _WHOLE_AT_ONCE:
            self.fs.put_file(file, path)
            return
        self.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        beside = f"{path}.{uuid.uuid4().hex[:8]}.new"
        self.fs.put_file(file, beside)
        self.fs.mv(beside, path)

    def read(self, name: str) -> bytes | None:
        """None where it is not there."""
        try:
            content: bytes = self.fs.cat_file(self.path(name))
            return content
        except FileNotFoundError:
            return None

    def exists(self, name: str) -> bool:
        self.fs.invalidate_cache()
        return bool(self.fs.exists(self.path(name)))

    def remove(self, *names: str) -> None:
        for name in names:
            with suppress(FileNotFoundError):  # somebody was first
                self.fs.rm_file(self.path(name))

    def remove_folder(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.fs.rm(self.path(name), recursive=True)

    def remove_empty(self, name: str) -> None:
        """Folders without a file are of file systems only."""
        if self.is_local:
            with suppress(OSError):
                os.rmdir(self.path(name))


def _walk(top: str,
          problem: Callable[[str, str], None]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All files below, of this machine. Links to folders are not followed."""

    def not_listed(error: OSError) -> None:
        if error.filename == top:
            raise error
        problem(error.filename, f"cannot be listed: {error.strerror}")

    for folder, _, names in os.walk(top, onerror=not_listed):
        for path in (os.path.join(folder, name) for name in names):
            try:
                info = os.stat(path)
            except OSError as error:
                problem(path, f"cannot be read: {error.strerror}")
                continue
            if stat.S_ISREG(info.st_mode):
                yield path, {"size": info.st_size, "mtime": info.st_mtime_ns}
            else:
                problem(path, "is no file but a pipe, a socket or a device: left out")


def _version(info: dict[str, Any]) -> str:
    return next((str(info[key]) for key in _VERSIONS if info.get(key) is not None), "")


def _modified(info: dict[str, Any]) -> datetime | None:
    for key in ("mtime", "LastModified", "last_modified", "updated", "modified", "created"):
        value = info.get(key)
        if isinstance(value, int):
            return datetime.fromtimestamp(value / 1e9, timezone.utc)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
    return None
