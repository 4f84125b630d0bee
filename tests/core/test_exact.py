"""Exact time: every path from a decimal text to ns gives the half-even rounding of that text."""

from __future__ import annotations

import math
import random
from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelane.core.base.exact import ns_from_floats, ns_from_text, ns_from_texts, ns_of

CONTEXT = Context(prec=800)


def oracle(text: str) -> int:
    """The definition, in decimal arithmetic."""
    return int(CONTEXT.multiply(Decimal(text), Decimal(1000)).to_integral_value(ROUND_HALF_EVEN))


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("1712195495505582.988", 1712195495505582988),
        (" 400 ", 400_000),
        ("1E+2", 100_000),
        ("1e-3", 1),
        ("1.7e15", 1_700_000_000_000_000_000),
        ("-50", -50_000),
        ("9223372036854775807", 9223372036854775807000),
        ("0.0005", 0),
        ("0.0015", 2),
        ("0.00050000000000000000000001", 1),
        ("-0.0015", -2),
        (".5", 500),
        ("5.", 5000),
        ("1e-999999", 0),
        ("0e999999", 0),
        ("1" + "0" * 5000, None),
        ("1e999999", None),
        ("1e400", None),
        ("1e9999999", None),
        ("abc", None),
        ("", None),
        (".", None),
        ("1 2", None),
        ("0x10", None),
        ("nan", None),
        ("inf", None),
        ("1_000", None),
        ("١", None),
    ],
)
def test_texts(text: str, ns: int | None) -> None:
    """Each form of number a trace may hold means its exact ns, and what is no finite number means none."""
    assert ns_from_text(text) == ns


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20))
def test_any_decimal(value: Decimal) -> None:
    """Decimals of any number of places round half to even."""
    assert ns_from_text(str(value)) == ns_of(value) == oracle(str(value))


@pytest.mark.parametrize("value", [True, None, [], {}, math.nan, math.inf, Decimal("NaN")])
def test_unusable_values(value: object) -> None:
    """What is no number is no time, booleans included."""
    assert ns_of(value) is None


def _texts(rng: random.Random, count: int) -> list[str]:
    texts = []
    for _ in range(count):
        whole = rng.randrange(2 ** rng.randrange(1, 52))
        decimals = rng.choice([0, 1, 2, 3, 3, 3, 3, 4, 5, 6, 9])
        fraction = "".join(rng.choice("0123456789" if rng.random() < 0.5 else "05") for _ in range(decimals))
        texts.append(("-" if rng.random() < 0.1 else "") + str(whole) + ("." + fraction if fraction else ""))
    return texts


def test_floats_are_exact_or_say_that_they_are_not() -> None:
    """Whatever decimal text a float was read from, a ns that is called sure is that text's ns."""
    texts = _texts(random.Random(1), 60_000)
    ns, unsure = ns_from_floats(np.array([float(text) for text in texts]))
    assert unsure is not None
    wrong = [
        text
        for text, value, doubt in zip(texts, ns.tolist(), unsure.tolist())
        if not doubt and value != oracle(text)
    ]
    assert wrong == []


def test_doubt_near_a_half_ns() -> None:
    """Texts a hair above and below half a ns are never settled by a float that cannot tell them apart."""
    for base in (5, 10**6 + 3, 2**41 + 7, 2**42 - 2):
        for text in (f"{base}.0005", f"{base}.00049999999999999999", f"{base}.0005000000000000000001"):
            ns, unsure = ns_from_floats(np.array([float(text)]))
            assert (unsure is not None and unsure[0]) or ns[0] == oracle(text)


@pytest.mark.parametrize("exponent", [0, 10, 20, 30, 41])
def test_ordinary_stamps_need_no_text(exponent: int) -> None:
    """Three decimals below 2**42 µs are sure by formula alone: the fast path stays fast."""
    rng = random.Random(exponent)
    texts = [
        f"{rng.randrange(2**exponent, 2 ** (exponent + 1))}.{rng.randrange(1000):03d}" for _ in range(5000)
    ]
    ns, unsure = ns_from_floats(np.array([float(text) for text in texts]))
    assert unsure is None
    assert ns.tolist() == [oracle(text) for text in texts]


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.from_regex(r"\A[0-9]{1,14}(\.[0-9]{1,3})?\Z"), min_size=1, max_size=40))
def test_vectorised_texts(texts: list[str]) -> None:
    """Plain decimal texts of mixed lengths parse as the oracle says, or are declined."""
    ns = ns_from_texts([text.encode() for text in texts])
    assert ns is None or ns.tolist() == [oracle(text) for text in texts]


@pytest.mark.parametrize("text", ["", "-1.000", "1e3", "1.2345", "1.2.3", "9" * 19, "1 2", ".", "+1"])
def test_vectorised_texts_decline(text: str) -> None:
    """Whatever is not plain is declined, never guessed; one such text declines the whole list."""
    assert ns_from_texts([b"12.500", text.encode()]) is None
    assert ns_from_texts([text.encode()]) is None


def test_absolute_stamps() -> None:
    """Epoch stamps of 19 digits, beyond float64, come out exact and fast."""
    texts = [f"17121954955{i:05d}.{i % 1000:03d}" for i in range(2000)]
    ns = ns_from_texts([text.encode() for text in texts])
    assert ns is not None
    assert ns.tolist() == [oracle(text) for text in texts]
