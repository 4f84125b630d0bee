"""The forms in which tables leave: a writer for each, loaded when it writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from ..base.errors import UsageError

if TYPE_CHECKING:
    from .listing import Listing, Writer

FORMS: Mapping[str, str] = {
    "json": "formats:json_form",
    "csv": "formats:csv_form",
    "md": "formats:markdown_form",
    "html": "formats:html_form",
}
"""Name -> "module:function" in this folder, which takes a Listing and yields text. What is added here is a
choice of --format of every command, and an ending of `:save table`.
"""


def emit(listing: Listing, form: str, own: Mapping[str, Writer] | None = None) -> Iterable[str]:
    """Return the text of tables in a form; `own` has the writers of what writes a form in its own way. Raises
    UsageError for a form that there is not.
    """
    if own and form in own:
        return own[form](listing)
    if form not in FORMS:
        raise UsageError(f"there is no form {form!r}; there are {', '.join({**FORMS, **(own or {})})}")
    module, _, name = FORMS[form].partition(":")
    writer: Writer = getattr(import_module(f"{__package__}.{module}"), name)
    return writer(listing)
