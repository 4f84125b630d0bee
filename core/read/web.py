"""Files on web servers: looked at and read by requests of our own over fsspec's connections.

fsspec itself says "no such file" whatever the server answers, follows every redirect, and takes whatever
comes for what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from ..base.numbers import whole_number
from .urls import WEB

MAX_REDIRECTS = 10
REDIRECTS = frozenset({301, 302, 303, 307, 308})
SILENT_S = 60
"""Seconds without a byte after which a server counts as gone."""
CHANGED = "it has changed on the server since it was opened: open it again"
TRIES = 5
"""So often a part of a file is asked for that comes short."""
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")


class AnswerError(OSError):
    """A server's answer is not the file that was asked for; the text says what it is."""


class FileVersion(NamedTuple):
    """What a server says of one state of a file; 0 and "" where it does not say."""

    size: int = 0
    etag: str = ""  # without its quotes
    changed: str = ""  # when it was changed last

    @property
    def condition(self) -> str:
        """The value of If-Match, "" for none: a weak ETag never matches there."""
        return f'"{self.etag}"' if self.etag and not self.etag.startswith("W/") else ""

    def check(self, answer: FileVersion) -> None:
        """Raise AnswerError for an answer of another state: by its ETag, without one by size and time."""
        if self.etag and answer.etag:
            same = _strong(self.etag) == _strong(answer.etag)
        else:
            same = not self.size or not answer.size or self.size == answer.size
            same = same and (not self.changed or not answer.changed or self.changed == answer.changed)
        if not same:
            raise AnswerError(CHANGED)


def short_answer(count: int, length: int, offset: int) -> AnswerError:
    """Return what is said where less of a part comes, however often it is asked for."""
    return AnswerError(
        f"the server gave {count:,} of {length:,} bytes from byte {offset:,} on, and was asked {TRIES} times"
    )


class WebAnswer(NamedTuple):
    """An answer: where it came from in the end, its head, and what was read of its body."""

    url: str
    status: int
    headers: Mapping[str, str]
    data: bytes = b""

    @property
    def version(self) -> FileVersion:
        part = _CONTENT_RANGE.match(self.headers.get("Content-Range", ""))
        if part is not None:
            size = "" if part[2] == "*" else part[2]
        else:
            is_plain = self.headers.get("Content-Encoding", "") in ("", "identity")
            size = self.headers.get("Content-Length", "") if is_plain and self.status == HTTPStatus.OK else ""
        etag = self.headers.get("ETag", "").strip('"')
        return FileVersion(
            whole_number(size) if size.isdecimal() else 0, etag, self.headers.get("Last-Modified", "")
        )

    def is_part_from(self, offset: int) -> bool:
        """Tell whether it is a part of the file that begins there."""
        part = _CONTENT_RANGE.match(self.headers.get("Content-Range", ""))
        return self.status == HTTPStatus.PARTIAL_CONTENT and part is not None and part[1] == str(offset)

    def check(self, version: FileVersion | None = None) -> WebAnswer:
        """Return it. Raises FileNotFoundError, or AnswerError for all but a file of this version."""
        if self.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            raise FileNotFoundError(self.url)
        if self.status == HTTPStatus.PRECONDITION_FAILED:
            raise AnswerError(CHANGED)
        if self.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise AnswerError(f"the server answers {status_text(self.status)}")
        if version is not None:
            version.check(self.version)
        return self


def status_text(status: int) -> str:
    """Return a status of HTTP with its meaning, as 404 Not Found."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def url_parts(url: str) -> SplitResult:
    """Return the parts of a URL. Raises ValueError where its host or port cannot be."""
    parts = urlsplit(url)
    if parts.port == 0 or (parts.scheme in WEB and not parts.hostname):
        raise ValueError("there is no host" if not parts.hostname else "port 0")
    return parts


def redirect_target(url: str, location: str) -> str:
    """Return where a redirect leads. Raises AnswerError for a scheme that is not followed, or no address."""
    try:
        target = urljoin(url, location)
        after = url_parts(target).scheme
    except ValueError as error:
        raise AnswerError(f"the server redirects to what is no address: {error}") from error
    before = urlsplit(url).scheme
    if after not in WEB or (before, after) == ("https", "http"):
        raise AnswerError(
            f"the server redirects from {before} to {after or 'nowhere'}, which is not followed"
        )
    return target


def web_status(system: Any, url: str) -> WebAnswer:
    """Return what a server says of a file, without its contents. Raises FileNotFoundError, AnswerError."""
    answer = _ask(system, "HEAD", url)
    if answer.status >= HTTPStatus.BAD_REQUEST or not answer.version.size:  # some answer GET alone
        answer = _ask(system, "GET", url)
    return answer.check()


def web_range(system: Any, url: str, offset: int, length: int, version: FileVersion | None) -> bytes:
    """Return at most `length` bytes at an offset of a file, fewer where the answer ends or breaks off. Raises
    FileNotFoundError, or AnswerError where the server gives something else, or another version.
    """
    headers = {"Range": f"bytes={offset}-{offset + length - 1}"}
    if version is not None and version.condition:
        headers["If-Match"] = version.condition
    answer = _ask(system, "GET", url, headers, length)
    if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        if version is not None:
            version.check(answer.version)
        return b""
    answer.check(version)
    if not answer.is_part_from(offset):
        raise AnswerError("the server gives another part of the file than is asked for")
    return answer.data


def answers_web_ranges(system: Any, url: str, size: int) -> bool:
    """Tell whether a web server gives the last byte of a file alone."""
    answer = _ask(system, "GET", url, {"Range": f"bytes={size - 1}-{size - 1}"}).check()
    return answer.is_part_from(size - 1)


class WebStream:
    """A file of a server without ranges, read from front to back; where it breaks off it is begun again."""

    def __init__(self, system: Any, url: str, version: FileVersion) -> None:
        self._system, self._url, self._version = system, url, version
        self._at = 0
        self._tries = 1
        self._response: Any = _sync(system, self._begun)

    def read(self, length: int) -> bytes:
        """Return the next bytes, at most `length`, none at the end. Raises AnswerError."""
        length = min(length, self._version.size - self._at)
        while length > 0:
            data: bytes = _sync(self._system, _some_of, self._response, length)
            if data:
                self._at += len(data)
                return data
            self.close()
            if self._tries == TRIES:
                raise short_answer(self._at, self._version.size, 0)
            self._tries += 1
            self._response = _sync(self._system, self._begun)
        return b""

    def close(self) -> None:
        self._system.loop.call_soon_threadsafe(self._response.close)

    async def _begun(self) -> Any:
        """Return an answer of which what was read before is read."""
        response, url = await _response(self._system, "GET", self._url, {})
        try:
            WebAnswer(url, response.status, response.headers).check(self._version)
            left = self._at
            while left and (data := await _some_of(response, left)):
                left -= len(data)
        except BaseException:
            response.close()
            raise
        return response


def _strong(etag: str) -> str:
    return etag.removeprefix("W/").strip('"')


def _sync(system: Any, function: Any, *arguments: Any) -> Any:
    """Return what a coroutine function returns in fsspec's thread."""
    from fsspec.asyn import sync

    return sync(system.loop, function, *arguments)


def _ask(
    system: Any, method: str, url: str, headers: Mapping[str, str] | None = None, length: int = 0
) -> WebAnswer:
    """Return the answer to a request; of its body at most `length` bytes, as many as come."""
    answer: WebAnswer = _sync(system, _answer, system, method, url, headers or {}, length)
    return answer


async def _answer(system: Any, method: str, url: str, headers: Mapping[str, str], length: int) -> WebAnswer:
    response, final = await _response(system, method, url, headers)
    data = bytearray()
    try:
        # An error is told by its status, all of the file in place of a part is not read.
        while response.status == HTTPStatus.PARTIAL_CONTENT and len(data) < length:
            some = await _some_of(response, length - len(data))
            if not some:
                break
            data += some
    finally:
        response.release()  # to be used again, where all of it was read
    return WebAnswer(final, response.status, response.headers, bytes(data))


async def _response(system: Any, method: str, url: str, headers: Mapping[str, str]) -> tuple[Any, str]:
    """Return the response at the end of all redirects, and its URL."""
    import aiohttp

    session = await system.set_session()
    times = aiohttp.ClientTimeout(total=None, sock_connect=SILENT_S, sock_read=SILENT_S)
    urls = [url]
    while True:
        response = await session.request(
            method,
            system.encode_url(urls[-1]),
            headers={"Accept-Encoding": "identity", **headers},
            allow_redirects=False,
            timeout=times,
        )
        location = response.headers.get("Location", "") if response.status in REDIRECTS else ""
        if not location:
            return response, urls[-1]
        response.close()
        target = redirect_target(urls[-1], location)
        if target in urls or len(urls) > MAX_REDIRECTS:
            raise AnswerError("the server redirects in a circle" if target in urls else "too many redirects")
        urls.append(target)


async def _some_of(response: Any, length: int) -> bytes:
    """Return the next bytes of a response, none where it has ended or broken off."""
    import aiohttp

    try:
        data: bytes = await response.content.read(length)
    except (aiohttp.ClientError, TimeoutError):
        return b""
    return data
