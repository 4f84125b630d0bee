"""What a URL is called: nothing of it is loaded or asked here."""

from __future__ import annotations

import posixpath
from urllib.parse import urlsplit, urlunsplit

from ..base.late_pattern import late_pattern

WEB = ("http", "https")
_URL = late_pattern(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]{1,40})://.")


def is_url(path: object) -> bool:
    """Tell whether a path is a URL: such as s3://bucket/key."""
    return isinstance(path, str) and _URL.match(path) is not None


def scheme_of(url: str) -> str:
    match = _URL.match(url)
    return match["scheme"].lower() if match else ""


def shown_url(url: str) -> str:
    """Return a URL as it may be shown: without a password, and without what follows a question mark, which is
    a signature where a link is signed.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")
    user = host[0].partition(":")[0]
    return urlunsplit((parts.scheme, f"{user}@{host[2]}" if user else host[2], parts.path, "", ""))


def url_in(url: str, name: str) -> str:
    return f"{url.rstrip('/')}/{name}"


def url_name(url: str) -> str:
    return posixpath.basename(urlsplit(url).path.rstrip("/"))
