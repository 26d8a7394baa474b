"""Reads ASN.1 in its distinguished encoding (DER, X.690), in which certificates and their requests are encoded."""


def content_range(der: bytes, position: int) -> tuple[int, int]:
    """Return where the content of the element at `position` starts and ends; the end may exceed the length of `der`.

    Raises:
        IndexError: the element is cut off before its content.
    """
    length, start = der[position + 1], position + 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[position + 2 : start], "big")
    return start, start + length
