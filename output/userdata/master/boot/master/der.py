"""ASN.1 in its distinguished encoding (X.690), as certificates and requests for them are written."""


def content(der: bytes, position: int) -> tuple[int, int]:
    """Return where the content of the element at `position` begins and ends; the end may lie behind that of `der`.

    Raises:
        IndexError: the element is cut off before its content.
    """
    length, begin = der[position + 1], position + 2
    if length & 0x80:
        begin += length & 0x7F
        length = int.from_bytes(der[position + 2 : begin], "big")
    return begin, begin + length
