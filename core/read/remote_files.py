"""Files by URL through fsspec: looked at, listed, read in ranges, written.

While a file is read it is the one that was looked at first: with each range its ETag is asked for, or what
the server says of it is compared.

Nothing of it is loaded before a URL is named.

Credentials, proxies and endpoints are those of the libraries behind a scheme: AWS's settings and environment
for s3, ~/.ssh for ssh. A host whose key is not in known_hosts is refused.
"""

from __future__ import annotations

import contextlib
import io
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import lru_cache
from typing import IO, Any, NamedTuple, cast
from urllib.parse import urlsplit

from ..base.errors import TracelaneError, UnreadableError
from ..base.installed import install_hint
from .urls import WEB, scheme_of, shown_url, url_in, url_name
from .web import (
    CHANGED,
    TRIES,
    AnswerError,
    FileVersion,
    WebStream,
    answers_web_ranges,
    short_answer,
    status_text,
    url_parts,
    web_range,
    web_status,
)

EXTRA = "fsspec s3fs aiohttp sshfs"
TESTED = ("s3", "http", "https", "ssh", "sftp")
"""Schemes whose packages come with the extra; others of fsspec work with a package of their own."""
SSH = ("ssh", "sftp")
MIN_AHEAD, MAX_AHEAD = 64 << 10, 8 << 20
"""Bytes that a stream asks for at first, and at most."""


class RemoteStatus(NamedTuple):
    """What is at a URL: a file and how to recognise it again, or a folder."""

    url: str
    version: FileVersion
    is_folder: bool = False
    mime_type: str = ""
    host: str = ""  # the other host that it comes from, where the server redirects there


@lru_cache(maxsize=64)
def file_system(scheme: str, authority: str) -> Any:
    """Return fsspec's file system of a scheme; `authority` is the URL's host (or bucket), user and port.
    Raises UnreadableError that says what to install where a package is missing.
    """
    try:
        import fsspec
    except ImportError:
        raise UnreadableError(f"{scheme}:// needs fsspec: {install_hint(EXTRA)}") from None
    try:
        kind = fsspec.get_filesystem_class(scheme)
    except ValueError:
        raise UnreadableError(f"{scheme}:// is no scheme that fsspec knows") from None
    except ImportError as error:
        raise UnreadableError(f"{scheme}:// {_missing(scheme, error)}") from None
    options: dict[str, Any] = dict(kind._get_kwargs_from_urls(f"{scheme}://{authority}/"))
    options.pop("path", None)
    if scheme in SSH and kind.__module__.startswith("sshfs"):
        options["known_hosts"] = ()  # those of ~/.ssh, which the library would not ask by itself
    elif scheme in SSH:
        raise UnreadableError(
            f"{scheme}:// needs sshfs: {install_hint(EXTRA)}"
        )  # paramiko's accepts every host
    with _named(f"{scheme}://{authority}"):
        return kind(**options)


def remote_status(url: str, missing: bool = False) -> RemoteStatus:
    """Return what is at a URL. Raises UnreadableError; FileNotFoundError where it may be `missing`."""
    with _opened(url, missing) as (system, path):
        if scheme_of(url) in WEB:
            answer = web_status(system, url)
            version, info = answer.version, {}
            mime_type = answer.headers.get("Content-Type", "").partition(";")[0]
            before, host = urlsplit(url).hostname, urlsplit(answer.url).hostname or ""
            host = "" if host == before else host
        else:
            system.invalidate_cache()
            info = system.info(path)
            version, mime_type, host = _version_of(info), str(info.get("mimetype") or ""), ""
    is_folder = info.get("type") == "directory" or (not version.size and url.endswith("/"))
    return RemoteStatus(url, version, is_folder, mime_type, host)


def _version_of(info: Mapping[str, Any]) -> FileVersion:
    """Return the state of a file that fsspec's info is of."""
    changed = next(
        (info[key] for key in ("LastModified", "Last-Modified", "mtime", "updated") if info.get(key)), ""
    )
    return FileVersion(
        int(info.get("size") or 0),
        str(info.get("ETag") or info.get("etag") or "").strip('"'),
        changed.isoformat() if isinstance(changed, datetime) else str(changed),
    )


def list_remote(url: str) -> list[RemoteStatus]:
    """Return the files and folders in a folder by name; [] where there is none. Raises UnreadableError."""
    web = scheme_of(url) in WEB
    if web and not url.endswith("/"):
        url += "/"
    with _opened(url) as (system, path):
        system.invalidate_cache()
        try:
            infos = system.ls(path, detail=True)
        except FileNotFoundError:
            return []
    listed = {}
    for info in infos:
        name = url_name(str(info["name"]))
        inside = str(info["name"]).startswith(url) if web else True
        if name and inside and str(info["name"]).rstrip("/") != path.rstrip("/"):
            folder = info.get("type") == "directory" or str(info["name"]).endswith("/")
            listed[name] = RemoteStatus(url_in(url, name), _version_of(info), folder)
    return [listed[name] for name in sorted(listed)]


def matching_remote(pattern: str) -> list[str]:
    """Return the URLs of the files that a pattern with * or [ matches, by name. Raises UnreadableError."""
    with _opened(pattern) as (system, path):
        system.invalidate_cache()
        return sorted(str(system.unstrip_protocol(name)) for name in system.glob(path))


def read_remote(url: str, offset: int, length: int) -> bytes:
    """Return `length` bytes at an offset of a file, fewer only at its end. Raises FileNotFoundError where
    there is none, else UnreadableError.
    """
    if length <= 0:
        return b""
    with _opened(url, missing=True) as (system, path):
        return _range(system, url, path, (offset, length), None)


def _range(system: Any, url: str, path: str, part: tuple[int, int], version: FileVersion | None) -> bytes:
    """Return a part (offset, length) of a file, or what comes of it. Raises FileNotFoundError, AnswerError
    where it is another version or all of the file comes, and what the libraries raise.
    """
    offset, length = part
    if scheme_of(url) in WEB:
        return web_range(system, url, offset, length, version)
    if scheme_of(url) == "s3":
        return _s3_range(system, path, offset, length, version)
    if version is not None:
        system.invalidate_cache()
        version.check(_version_of(system.info(path)))
    if scheme_of(url) in SSH:  # sshfs' cat_file gives all of it
        with system.open(path, "rb") as file:
            file.seek(offset)
            return bytes(file.read(length))
    data: bytes = system.cat_file(path, start=offset, end=offset + length)
    if len(data) > length:
        raise AnswerError("the server gives all of the file where a part is asked for")
    return data


def _s3_range(system: Any, path: str, offset: int, length: int, version: FileVersion | None) -> bytes:
    """Return a part of an object of this version; s3fs' own cat_file asks for no version."""
    from fsspec.asyn import sync

    bucket, key, number = system.split_path(path)
    request = {"Bucket": bucket, "Key": key, "Range": f"bytes={offset}-{offset + length - 1}"}
    if number:
        request["VersionId"] = number
    if version is not None and version.condition:
        request["IfMatch"] = version.condition

    async def given() -> bytes:
        answer = await system._call_s3("get_object", **request)
        try:
            data: bytes = await answer["Body"].read()
        except Exception:  # it broke off; each layer below has errors of its own
            data = b""
        finally:
            answer["Body"].close()
        if version is not None:
            version.check(FileVersion(etag=str(answer.get("ETag", "")).strip('"')))
        return data

    try:
        part: bytes = sync(system.loop, given)
    except OSError as error:
        response = getattr(error.__cause__, "response", None) or {}
        if response.get("Error", {}).get("Code") in ("PreconditionFailed", "412"):
            raise AnswerError(CHANGED) from None
        raise
    return part


def open_remote(url: str) -> IO[bytes]:
    """Return a file to be read, from a place in it too where the server answers ranges. Raises
    FileNotFoundError where there is none, else UnreadableError.
    """
    status = remote_status(url, missing=True)
    return RemoteFile(url, status.version, answers_ranges(url, status.version.size)).open("rb")


def write_remote(url: str, data: bytes) -> None:
    """Write a file, whole or not at all. Raises UnreadableError."""
    with _opened(url) as (system, path):
        if scheme_of(url) in SSH:
            folder, name = posixpath.split(path)
            import secrets

            hidden = posixpath.join(folder, f".{name}-{secrets.token_hex(6)}")  # of this writer alone
            system.makedirs(folder, exist_ok=True)
            system.pipe_file(hidden, data)
            system.mv(hidden, path)
        else:
            system.pipe_file(path, data)


def remove_remote(url: str) -> None:
    """Remove a file; nothing where it is gone already. Raises UnreadableError."""
    with _opened(url) as (system, path), contextlib.suppress(FileNotFoundError):
        system.rm_file(path)


def answers_ranges(url: str, size: int) -> bool:
    """Tell whether a part of a file can be read alone: some web servers give all of it each time."""
    if scheme_of(url) not in WEB or size < 2:
        return True
    with _opened(url) as (system, _):
        return answers_web_ranges(system, url, size)


@dataclass(frozen=True)
class RemoteFile:
    """A file by URL that opens as a path does."""

    url: str
    version: FileVersion
    has_ranges: bool = True

    held = None
    """No file is held open on this machine."""

    @property
    def size(self) -> int:
        return self.version.size

    def is_still(self, _: Mapping[str, int | str]) -> bool:
        """Tell whether the server says of the file what it said when it was looked at."""
        try:
            return remote_status(self.url).version == self.version
        except UnreadableError:
            return False

    def to_message(self) -> dict[str, Any]:
        return {**asdict(self), "version": self.version._asdict()}

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> RemoteFile:
        return cls(**{**message, "version": FileVersion(**message["version"])})

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill a buffer with what stands at an offset; return how much there was. Raises UnreadableError."""
        data = self.read_range(offset, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read_range(self, offset: int, length: int) -> bytes:
        """Return `length` bytes at an offset, fewer only at the end of the file; what is missing of them is
        asked for again. Raises UnreadableError, also where the file is another by now.
        """
        length = min(length, self.size - offset)
        data = b""
        with _opened(self.url) as (system, path):
            for _ in range(TRIES):
                if len(data) >= length:
                    break
                part = (offset + len(data), length - len(data))
                data += _range(system, self.url, path, part, self.version)
            if len(data) < length:
                raise short_answer(len(data), length, offset)
        return data

    def open(self, mode: str, buffering: int = -1, /) -> IO[Any]:
        """Open it to be read from front to back, or anywhere where the server answers ranges."""
        return cast(IO[Any], RemoteStream(self))


class RemoteStream(io.RawIOBase):
    """A file by URL being read, each time twice as much ahead as before."""

    def __init__(self, file: RemoteFile) -> None:
        self._file = file
        self._held = b""
        self._begin = self._at = 0  # of what is held; where reading stands
        self._ahead = MIN_AHEAD
        self._stream: WebStream | None = None
        if not file.has_ranges:
            with _opened(file.url) as (system, _):
                self._stream = WebStream(system, file.url, file.version)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.has_ranges

    def readinto(self, buffer: Any, /) -> int:
        if self._stream is not None:
            with _named(self._file.url):
                data = self._stream.read(len(buffer))
        else:
            inside = self._at - self._begin
            if not 0 <= inside < len(self._held) and self._at < self._file.size:
                length = max(self._ahead, len(buffer))
                self._held, self._begin, inside = self._file.read_range(self._at, length), self._at, 0
                self._ahead = min(2 * self._ahead, MAX_AHEAD)
            data = self._held[inside : inside + len(buffer)] if inside >= 0 else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a place; OSError where the server gives the file from front to back only."""
        position = offset + (0, self._at, self._file.size)[whence]
        if self._stream is not None and (position != self._at or whence == io.SEEK_END):
            raise OSError("the server gives the file from front to back only")
        self._at = position
        return position

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        if self._stream is not None and not self.closed:
            self._stream.close()
        super().close()


@contextmanager
def _opened(url: str, missing: bool = False) -> Iterator[tuple[Any, str]]:
    """Yield the file system of a URL and the path there; what goes wrong is an UnreadableError of one line,
    but for a missing file where that is expected.
    """
    try:
        parts = url_parts(url)
    except ValueError as error:  # the URL is not shown: nothing says where a password in it ends
        raise UnreadableError(f"the URL of scheme {scheme_of(url)} is no address: {error}") from error
    system = file_system(scheme_of(url), parts.netloc)
    path = str(system._strip_protocol(url))
    if scheme_of(url) in SSH:
        path = parts.path or "/"
    with _named(url, missing):
        yield system, path


@contextmanager
def _named(url: str, missing: bool = False) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        if missing:
            raise
        raise UnreadableError(f"{shown_url(url)}: no such file") from None
    except (TracelaneError, NotImplementedError, ValueError):
        raise
    except Exception as error:  # each library has errors of its own
        raise UnreadableError(f"{shown_url(url)}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    text = " ".join(str(getattr(error, "strerror", None) or error).split())
    name = type(error).__name__
    if isinstance(status := getattr(error, "status", None), int):  # aiohttp's text has the whole URL
        return f"the server answers {status_text(status)}"
    return f"{name}: {text}" if text and not isinstance(error, OSError) else text or name


def _missing(scheme: str, error: ImportError) -> str:
    if scheme in TESTED:
        return f"needs a package that is not installed: {install_hint(EXTRA)}"
    return f"needs a package that is not installed: {' '.join(str(error).split())}"
