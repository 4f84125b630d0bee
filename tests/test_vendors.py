"""The table of vendors has expressions that can be used as they are."""

from __future__ import annotations

import re

import pytest

from tracelane.core.base.vendors import VENDORS, Vendor, any_of


@pytest.mark.parametrize(
    "field", [name for name in Vendor._fields if isinstance(getattr(VENDORS[0], name), str)]
)
def test_fields_are_expressions(field: str) -> None:
    """Each field of each vendor is an expression by itself, which matches nothing empty."""
    for vendor in VENDORS:
        text = getattr(vendor, field)
        assert not text or re.compile(text).search("") is None, vendor.name
    if field not in ("name", "prefix", "word"):
        assert any_of(field)
