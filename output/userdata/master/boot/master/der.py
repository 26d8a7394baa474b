"""Reads ASN.1 in its distinguished encoding (DER, X.690), in which certificates and their requests are encoded."""


def content_range(der: bytes, position: int) -> tuple[int, int]:
    """Return the positions where the content of the element at `position` starts and ends.

    The end may exceed the length of `der`: then the element is incomplete.

    Raises:
        IndexError: the element is cut off before its content.
    """
    # The first byte is the tag, the second the length. If the length's highest bit is set, its other bits are the
    # number of further bytes that contain the length.
    length, start = der[position + 1], position + 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[position + 2 : start], "big")
    return start, start + length
