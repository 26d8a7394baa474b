"""Certificates and requests whose encoding is odd: understood where DER allows it, refused where it does not."""

from __future__ import annotations

import base64

import pytest

from cfngen.boot.master.csr_approval import parse_csr
from cfngen.boot.master.der import content_range


@pytest.mark.parametrize(
    ("head", "place"),
    [
        (b"\x30\x00", (2, 2)),
        (b"\x30\x7f", (2, 129)),
        # From 128 bytes on, the length stands in bytes of its own, whose number is said first.
        (b"\x30\x81\x80", (3, 131)),
        (b"\x30\x82\x01\x00", (4, 260)),
        (b"\x30\x83\x01\x00\x00", (5, 65541)),
        (b"\x05\x00\x30\x82\x02\x03", (2, 2)),
    ],
)
def test_length_of_an_element_is_read_in_each_of_its_forms(head: bytes, place: tuple[int, int]) -> None:
    assert content_range(head, 0) == place
    # Behind another element all of it lies further on.
    assert content_range(b"\x02\x01\x07" + head, 3) == (place[0] + 3, place[1] + 3)


@pytest.mark.parametrize("cut", [b"", b"\x30"])
def test_element_without_a_length_is_cut_off(cut: bytes) -> None:
    with pytest.raises(IndexError):
        content_range(cut, 0)


def pem(der: bytes) -> str:
    text = base64.b64encode(der).decode()
    return f"-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n"


@pytest.mark.parametrize(
    "der",
    [
        b"",
        b"\x30",
        b"\x30\x80",
        b"\x30\x05\x30\x00",
        b"\x30\x00",
        b"\x02\x01\x00",
        b"\x30\x02\x30\x00",
        b"\x30\x00\x30\x00",
        b"\x30\x84\xff\xff\xff\xff",
        bytes(64),
    ],
    ids=["nothing", "no length", "no end", "cut off", "empty", "a number", "empty inside", "two", "4 GiB", "zeros"],
)
def test_what_is_no_request_is_an_error_that_is_told(der: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        parse_csr(pem(der))
