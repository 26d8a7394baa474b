"""A registry of container images on the lab's network: it serves an OCI image layout, and takes nothing in.

For pulling only, after the OCI Distribution Specification (pulling manifests, pulling blobs) and the OCI Image Layout
Specification. Which registry an image is of stands in its name within the layout: containerd, asking here as a mirror,
names the registry that it means (`?ns=registry.k8s.io`), and who asks without is shown what has that name alone.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import socket
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab_metadata import Server

PORT = 5001
# As `ctr images export`, `skopeo copy oci:` and `crane pull --format=oci` write them, the fuller one first.
NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
VERSION = ("Docker-Distribution-Api-Version", "registry/2.0")
PATH = re.compile(r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs)/(?P<reference>[^/]+)")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# Kinds of manifests in the layout; the bytes themselves say which, but not all of them do.
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class LayoutError(Exception):
    """A folder is no OCI image layout, or lacks what it names."""


@dataclass(frozen=True)
class Reference:
    """What an image is called.

    Attributes:
        registry: its host, e.g. `registry.k8s.io`.
        name: its name there, e.g. `coredns/coredns`.
        tag: its tag.
    """

    registry: str
    name: str
    tag: str


def reference(text: str) -> Reference | None:
    """Return the parts of an image's whole name, e.g. of `registry.k8s.io/pause:3.10.1`; None if it is not whole."""
    host, _, rest = text.partition("@")[0].partition("/")
    name, _, tag = rest.rpartition(":")
    return Reference(host, name, tag) if name and tag and ("." in host or ":" in host) else None


class Layout:
    """The images of a folder.

    Args:
        folder: an OCI image layout: `oci-layout`, `index.json` and `blobs/sha256/`.

    Raises:
        LayoutError: it is none, a manifest is missing, or an image has no whole name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            json.loads((folder / "oci-layout").read_text())["imageLayoutVersion"]
            listed = json.loads((folder / "index.json").read_text())["manifests"]
        except (OSError, ValueError, KeyError) as error:
            raise LayoutError(f"{folder} is no OCI image layout: {error}") from error
        self.tags: dict[Reference, str] = {}
        self.types: dict[str, str] = {}
        for each in listed:
            names = (each.get("annotations", {}).get(key, "") for key in NAMES)
            found = next(filter(None, map(reference, names)), None)
            if found is None:
                raise LayoutError(f"{folder}: {each['digest']} has no whole name, such as registry.k8s.io/pause:3.10.1")
            self.tags[found] = each["digest"]
            self._know(each)

    @property
    def registries(self) -> list[str]:
        """The hosts whose images it holds."""
        return sorted({each.registry for each in self.tags})

    def blob(self, digest: str) -> bytes | None:
        """Return a blob by its digest, if it is there."""
        file = self.folder / "blobs" / "sha256" / digest.partition(":")[2]
        return file.read_bytes() if DIGEST.fullmatch(digest) and file.is_file() else None

    def digest(self, registry: str, name: str, tag: str) -> str:
        """Return the digest of an image's manifest; empty if there is no such image, or several without a registry."""
        found = {
            digest
            for each, digest in self.tags.items()
            if (each.name, each.tag) == (name, tag) and registry in ("", each.registry)
        }
        return found.pop() if len(found) == 1 else ""

    def _know(self, descriptor: dict[str, Any]) -> None:
        """Note what kind of manifest a descriptor means, and those that it lists."""
        digest = descriptor["digest"]
        content = self.blob(digest)
        if content is None:
            raise LayoutError(f"{self.folder} lists {digest} and does not hold it")
        if hashlib.sha256(content).hexdigest() != digest.partition(":")[2]:
            raise LayoutError(f"{self.folder}: {digest} is something else")
        body = json.loads(content)
        self.types[digest] = descriptor.get("mediaType") or body.get("mediaType") or self._kind(body)
        for each in body.get("manifests", []):
            # An index may list what was left out, as images of other architectures are.
            if self.blob(each["digest"]) is not None:
                self._know(each)

    @staticmethod
    def _kind(body: dict[str, Any]) -> str:
        return INDEX if "manifests" in body else MANIFEST


def _answers(layout: Layout, asked: list[str]) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _respond(self) -> None:
            asked.append(self.path)
            status, headers, body = answer(layout, self.path)
            self.send_response(status)
            for key, value in (VERSION, *headers, ("Content-Length", str(len(body)))):
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_GET = do_HEAD = _respond  # noqa: N815 - the base class wants these names

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    return Handler


def answer(layout: Layout, path: str) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return status, headers and body for a path.

    Args:
        layout: what there is.
        path: with its query.
    """
    parts = urllib.parse.urlsplit(path)
    if parts.path in ("/v2", "/v2/"):
        return 200, [], b"{}"
    match = PATH.fullmatch(urllib.parse.unquote(parts.path))
    if not match:
        return 404, *_error("NAME_UNKNOWN", parts.path)
    [registry] = urllib.parse.parse_qs(parts.query).get("ns", [""])[:1]
    wanted = match["reference"]
    if match["kind"] == "manifests" and not wanted.startswith("sha256:"):
        wanted = layout.digest(registry, match["name"], wanted)
    content = layout.blob(wanted)
    if content is None or (match["kind"] == "manifests" and wanted not in layout.types):
        return 404, *_error(f"{match['kind'][:-1].upper()}_UNKNOWN", f"{match['name']}: {match['reference']}")
    kind = layout.types[wanted] if match["kind"] == "manifests" else "application/octet-stream"
    return 200, [("Content-Type", kind), ("Docker-Content-Digest", wanted)], content


def _error(code: str, message: str) -> tuple[list[tuple[str, str]], bytes]:
    """Return headers and body of an error, as the specification words them."""
    body = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
    return [("Content-Type", "application/json")], body


def serve(sock: socket.socket, layout: Layout, asked: list[str]) -> Server:
    """Serve a layout.

    Args:
        sock: where to listen.
        layout: the images.
        asked: gets every path that is asked for.
    """
    return Server(sock, _answers(layout, asked))
