"""The cluster file in the templates that are deployed, so that a stack can give it back.

It is in the metadata of the template, and not of a resource, since instances may read the latter. "During a stack
update, you cannot update the Metadata section by itself. You can update it only when you include changes that add,
modify, or delete resources" (AWS CloudFormation User Guide, "CloudFormation template Metadata syntax"). So a wait
condition handle, which creates nothing in AWS, is named by the file's digest: it changes with the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

from cfngen.cluster.naming.logical_ids import ClusterFileId
from cfngen.templates.document import STANDALONE, Document
from cfngen.templates.standalone import MAX_BYTES, MAX_RESOURCES

_KEY = "clusterFile"
# Printable ASCII but for the percent sign. GetTemplate returns a question mark for each other character
# (aws-cloudformation/cloudformation-coverage-roadmap#1220).
_READABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "") + "\n\t"


def with_cluster_file(documents: Sequence[Document], content: bytes) -> tuple[Document, ...]:
    """Return templates of which the root and `standalone` keep a cluster file, unless that is empty or too large."""
    return tuple(
        _with_file(document, content) if content and (document.children or document.name == STANDALONE) else document
        for document in documents
    )


def _with_file(document: Document, content: bytes) -> Document:
    # Braces that a tool could take for a reference of CloudFormation are percent-encoded as well (RFC 3986).
    text = quote_from_bytes(content, safe=_READABLE).replace("{{", "%7B%7B").replace("${", "$%7B")
    handle_id = str(ClusterFileId(hashlib.sha256(content).hexdigest()[:12]))
    body = document.body
    metadata = {**body["Metadata"], "cfngen": {**body["Metadata"]["cfngen"], _KEY: text.split("\n")}}
    resources = {**body["Resources"], handle_id: {"Type": "AWS::CloudFormation::WaitConditionHandle"}}
    body = {**body, "Metadata": metadata, "Resources": resources}
    fits = len(resources) <= MAX_RESOURCES and len(json.dumps(body, indent=2)) <= MAX_BYTES
    return replace(document, body=body) if fits else document


def kept_file(template: Mapping[str, Any]) -> bytes:
    """Return the cluster file that a deployed root or standalone template keeps; empty if it keeps none."""
    lines = template.get("Metadata", {}).get("cfngen", {}).get(_KEY, [])
    return unquote_to_bytes("\n".join(lines))
