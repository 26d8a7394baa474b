"""Names the cluster in each object of the JSON that a command prints for it."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from cfngen.cli.input.cluster_files import ClusterFile


def naming_stream(stream: TextIO, file: ClusterFile) -> io.TextIOWrapper:
    """Return a stream that hands on the JSON written to it, one object a line, with the keys of a cluster in each.

    An object may be written in several lines; what is not JSON is handed on as it is when the stream is closed.
    """
    return io.TextIOWrapper(io.BufferedWriter(_NamingStream(stream, file)), encoding="utf-8", write_through=True)


class _NamingStream(io.RawIOBase):
    def __init__(self, stream: TextIO, file: ClusterFile) -> None:
        self._stream = stream
        self._keys = {"clusterName": file.cluster.name, "clusterFile": str(file.path)}
        self._written = b""

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        for line in bytes(content).splitlines(keepends=True):
            self._written += line
            if line.endswith(b"\n"):
                self._hand_on()
        return len(bytes(content))

    def close(self) -> None:
        if self._written:
            click.echo(self._written, file=self._stream, nl=False)
            self._written = b""
        super().close()

    def _hand_on(self) -> None:
        if self._written[:-1].rpartition(b"\n")[2].startswith(b" "):
            return  # an indented line is none with which an object ends
        try:
            value = json.loads(self._written)
        except ValueError:
            return
        named = {**self._keys, **value} if isinstance(value, dict) else value
        click.echo(json.dumps(named, ensure_ascii=False).encode(), file=self._stream)
        self._written = b""
