"""ASCII replacements for typographic characters such as • and …, for locales that cannot show them.

All texts use the typographic characters. Where the locale is C or POSIX, or its encoding lacks them, standard output
and standard error replace them by ASCII; other non-ASCII characters, such as those in a name of the cluster file, are
kept. Data for programs is printed with `print_verbatim`, which replaces nothing.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper

import click

ASCII_REPLACEMENTS = {
    "\N{NO-BREAK SPACE}": " ",
    "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{EN DASH}": "-",
    "\N{BULLET}": "*",
    "\N{MIDDLE DOT}": ".",
    "\N{BLACK CIRCLE}": "*",
    "\N{CHECK MARK}": "+",
    "\N{BALLOT X}": "x",
    "\N{PLUS-MINUS SIGN}": "+-",
}
ASCII_CODEC = "cfngen_ascii_signs"
"""Name of the encoding that is UTF-8 with ASCII replacements, and of the error handler that replaces by ASCII."""
# The values that Python gives LC_CTYPE when it switches to its UTF-8 mode.
_UTF8_MODE_LOCALES = ("C.UTF-8", "C.utf8", "UTF-8")
_TRANSLATION_TABLE = str.maketrans(ASCII_REPLACEMENTS)


def print_verbatim(text: str) -> None:
    """Print data on standard output, with a newline, as UTF-8 in every locale."""
    click.echo(text.encode())


def locale_has_typography(environ: Mapping[str, str]) -> bool:
    """Return whether the environment's locale has typographic characters, as every locale but C and POSIX has.

    LC_ALL, LC_CTYPE and LANG are read in this order; the first that is set and not empty names the locale, and without
    any the locale is C (POSIX, section 8.2, "Internationalization Variables"). In the C locale Python switches to its
    UTF-8 mode and sets LC_CTYPE for child processes (PEP 538 and 540); this value of LC_CTYPE is ignored, since the
    user did not set it.
    """
    names = ["LC_ALL", "LC_CTYPE", "LANG"]
    if sys.flags.utf8_mode and environ.get("LC_CTYPE") in _UTF8_MODE_LOCALES:
        names.remove("LC_CTYPE")
    locale = next(filter(None, map(environ.get, names)), "C")
    return locale not in ("C", "POSIX")


@contextmanager
def ascii_fallback(environ: Mapping[str, str]) -> Iterator[None]:
    """Replace characters that the locale cannot show, on standard output and standard error, within a `with` block."""
    with ExitStack() as restore_streams:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                encoding, errors = stream.encoding, stream.errors
                encoding_name = codecs.lookup(encoding).name
                if encoding_name not in ("utf-8", "ascii"):
                    stream.reconfigure(errors=ASCII_CODEC)
                elif encoding_name == "ascii" or not locale_has_typography(environ):
                    stream.reconfigure(encoding=ASCII_CODEC, errors=errors)
                else:
                    continue
                restore_streams.callback(stream.reconfigure, encoding=encoding, errors=errors)
        yield


class _AsciiEncoder(codecs.IncrementalEncoder):
    """Encodes UTF-8, with ASCII replacements for typographic characters."""

    def encode(self, text: str, final: bool = False) -> bytes:
        return _encode_with_ascii_signs(text, self.errors)[0]


def _encode_with_ascii_signs(text: str, errors: str = "strict") -> tuple[bytes, int]:
    """Return the encoded text, and how many characters were encoded, as `codecs` requires of an encoder."""
    return text.translate(_TRANSLATION_TABLE).encode("utf-8", errors), len(text)


def _find_ascii_codec(name: str) -> codecs.CodecInfo | None:
    """Return the encoding of this name if it is ASCII_CODEC; None tells `codecs` to search elsewhere."""
    if name != ASCII_CODEC:
        return None
    utf8 = codecs.lookup("utf-8")
    return codecs.CodecInfo(_encode_with_ascii_signs, utf8.decode, incrementalencoder=_AsciiEncoder, name=ASCII_CODEC)


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement for characters that an encoding lacks; an error handler of `codecs`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unencodable: str = error.object[error.start : error.end]
    return "".join(ASCII_REPLACEMENTS.get(character, "?") for character in unencodable), error.end


codecs.register(_find_ascii_codec)
codecs.register_error(ASCII_CODEC, _replace_unencodable)
