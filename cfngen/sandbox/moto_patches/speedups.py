"""Speeds up moto: caches or skips work that it does for every request."""

from __future__ import annotations

import functools
import io
import re
import string
import sys
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit
from xml.sax.saxutils import escape, quoteattr

import xmltodict
from botocore.awsrequest import AWSPreparedRequest
from moto import backends
from moto.backend_index import backend_url_patterns
from moto.core import botocore_stubber, loaders, models, responses
from moto.core import utils as core_utils
from moto.core.base_backend import AccountSpecificBackend, BackendDict, BaseBackend
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.config import default_user_config
from moto.core.constants import MISSING
from moto.core.request import Request
from moto.core.serialize import (
    AttributePickerContext,
    DefaultAttributePicker,
    ResponseSerializer,
    XFormedAttributePicker,
)
from moto.ec2.models.amis import AmiBackend
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.instance_types import InstanceTypeOfferingBackend
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix
from moto.kms import models as kms_models
from moto.kms import utils as kms_utils
from moto.moto_api._internal.moto_random import MotoRandom
from werkzeug.exceptions import HTTPException

from cfngen.sandbox.moto_patches.registry import Patches, method_names_from_class
from cfngen.sandbox.untyped import MotoModel, Original

_SPEEDUPS = Patches()
apply = _SPEEDUPS.apply

# moto 5.2.5 generates an RSA key for each KMS key, even a symmetric one, which takes 0.05 seconds
# (moto/kms/models.py, `Key`).
_SPEEDUPS.sets(kms_models, "generate_private_key", functools.cache(kms_utils.generate_private_key))

_SPEEDUPS.sets(responses, "method_names_from_class", method_names_from_class)

# moto 5.2.5 finds the name of the method for each request's operation letter by letter (moto/core/responses.py).
_method_name = functools.lru_cache(maxsize=4096)(core_utils.camelcase_to_underscores)
_SPEEDUPS.sets(responses, "camelcase_to_underscores", _method_name)

# moto 5.2.5 creates a new loader of botocore's models for each service (moto/core/utils.py, `_load_service_model`), and
# each loader searches the directories of botocore's four hundred services again.
_SPEEDUPS.sets(core_utils, "create_loader", functools.cache(loaders.create_loader))

# The library `responses` answers in place of AWS for users of `requests`, which neither cfngen nor boto3 is. moto 5.2.5
# registers 1,300 URLs with it whenever an account is opened (moto/core/models.py, `_enable_patching`).
_SPEEDUPS.sets(models, "RESPONSES_METHODS", [])

# An account has only registered images. moto 5.2.5 loads a thousand, each with a snapshot (moto/ec2/models/amis.py,
# `_load_amis`), and searches them often. Setting `MOTO_EC2_LOAD_DEFAULT_AMIS` does not help: moto reads it when a
# region is first used, and tests of commands have cleared the environment by then.
_SPEEDUPS.sets(AmiBackend, "_load_amis", lambda backend: None)

_URLS: dict[tuple[type, str], object] = {}  # by the class of the service's backend, and region


@_SPEEDUPS.patches_property(BaseBackend, "urls")
def _make_urls_once(original: Original, self: MotoModel) -> object:
    """Make the URLs of a service in a region once.

    moto 5.2.5 makes them again for each request (moto/core/base_backend.py, `urls`).
    """
    key = (type(self), self.region_name)
    if key not in _URLS:
        _URLS[key] = original(self)
    return _URLS[key]


@functools.lru_cache(10_000)  # URLs of services with a query protocol are few; those of S3 and Route 53 name objects
def _method_at(url: str) -> Callable[..., Any] | None:
    """Return the method that answers requests to a URL without its query, as moto 5.2.5 looks for it."""
    address, _ = core_utils.get_equivalent_url_in_aws_domain(url)
    url = f"{address.scheme}://{address.netloc}{address.path}"
    for service, pattern in backend_url_patterns:
        if pattern.match(url):
            backend = backends.get_backend(service)  # type: ignore[call-overload]
            if not isinstance(backend, BackendDict):  # that of moto itself, or of the metadata of instances
                return None
            regions: Any = backend[models.DEFAULT_ACCOUNT_ID]
            urls = regions["us-east-1" if "us-east-1" in regions else "aws"].urls
            for path, method in urls.items():
                if re.match(path, url):
                    return method  # type: ignore[no-any-return]
    return None


@_SPEEDUPS.patches(BotocoreStubber, "process_request")
def _find_method_once(original: Original, self: MotoModel, request: AWSPreparedRequest) -> object:
    """Look once for the method that answers requests to a URL.

    moto 5.2.5 compares the URL of each request with those of a hundred services (moto/core/botocore_stubber.py).
    """
    core = default_user_config.get("core", {})
    is_restricted = core.get("service_whitelist") is not None or any(core.get("passthrough", {}).values())
    method = None if is_restricted else _method_at(str(request.url).partition("?")[0])
    if method is None:
        return original(self, request)
    normalized = botocore_stubber.normalize_request(request)  # type: ignore[attr-defined]  # the gate replaces it
    try:
        status, headers, body = method(normalized, normalized.raw_url, normalized.headers)
    except HTTPException as error:
        return error.code, error.get_headers(), error.get_body()
    return status, headers, body


_make_request = Request.from_primitives


def _request_from_primitives(method: str, url: str, headers: Any, body: object = None) -> Request:
    """Make the WSGI environment of a request to the root of a service, as those of query and JSON protocols are.

    moto 5.2.5 does so with the builder of werkzeug's test client (moto/core/request.py).
    """
    address = urlsplit(url)
    content = body.encode() if isinstance(body, str) else body or b""
    if address.path != "/" or address.query or not isinstance(content, bytes):
        return _make_request(method, url, headers, body)
    host, _, port = address.netloc.partition(":")
    environment = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": "/",
        "QUERY_STRING": "",
        "REQUEST_URI": "/",
        "RAW_URI": "/",
        "SERVER_NAME": host,
        "SERVER_PORT": port or ("443" if address.scheme == "https" else "80"),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": address.netloc,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": address.scheme,
        "wsgi.input": io.BytesIO(content),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        if key not in ("CONTENT_LENGTH", "TRANSFER_ENCODING"):
            key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
            environment[key] = value.decode() if isinstance(value, bytes) else str(value)
    environment["CONTENT_LENGTH"] = str(len(content))
    return Request(environment)


_SPEEDUPS.sets(Request, "from_primitives", staticmethod(_request_from_primitives))


def _cached_property(name: str) -> None:
    """Let a property of a request be computed once; several readers of each request ask for it (moto 5.2.5)."""
    cached = functools.cached_property(vars(Request)[name].fget)
    cached.__set_name__(Request, name)
    _SPEEDUPS.sets(Request, name, cached)


_cached_property("raw_path")
_cached_property("raw_url")


@_SPEEDUPS.replaces(MotoRandom, "get_random_string")
def _random_string(self: MotoModel, length: int = 20, include_digits: bool = True, lower_case: bool = False) -> str:
    """Choose all characters at once; every response has an id of 52 characters, which moto 5.2.5 chooses one by one."""
    characters = string.ascii_letters + string.digits if include_digits else string.ascii_letters
    chosen = "".join(self.choices(characters, k=length))
    return chosen.lower() if lower_case else chosen


@_SPEEDUPS.patches(InstanceTypeOfferingBackend, "matches_filters")
def _compare_type(original: Original, self: MotoModel, offering: dict[str, str], filters: Any, kind: str) -> bool:
    """Compare the type of an offering directly; each launch looks through thousands (moto 5.2.5)."""
    if len(filters) == 1 and "instance-type" in filters:
        return offering["InstanceType"] in filters["instance-type"]
    return bool(original(self, offering, filters, kind))


@_SPEEDUPS.replaces(AccountSpecificBackend, "reset")
def _drop_old_account(self: MotoModel) -> None:
    """Let what is in an account go when a new one is opened, and make nothing in its place.

    moto 5.2.5 first resets each service in each region, which makes EC2's default network, and then forgets them all
    (moto/core/base_backend.py, `BackendDict.reset`). Services with a `reset` of their own, which close files, keep it.
    """
    for backend in self.values():
        if type(backend).reset is not BaseBackend.reset:
            backend.reset()


@_SPEEDUPS.replaces(TaggedEC2Resource, "get_tags")
def _find_tags_by_id(self: MotoModel) -> list[dict[str, str]]:
    """Look up the tags of an EC2 resource by its id.

    moto 5.2.5 searches the tags of all resources with a regular expression, for each filter of each resource
    (moto/ec2/models/core.py, `get_tags`).
    """
    tags = self.ec2_backend.tags.get(self.id) if self.id else None
    if not tags:
        return []
    resource_type = EC2_PREFIX_TO_RESOURCE.get(get_prefix(self.id), "")
    return [
        {"resource_id": self.id, "key": key, "value": value, "resource_type": resource_type}
        for key, value in tags.items()
    ]


@_SPEEDUPS.patches(ResponseSerializer, "get_value")
def _get_value_by_known_keys(original: Original, self: MotoModel, value: object, key: str, shape: Any) -> object:
    """Find an attribute of a result by the keys that are possible for objects of its class.

    moto 5.2.5 lists the possible keys again for each attribute of each object, and compares each attribute's path with
    those of all transformers of the service (moto/core/serialize.py, `AttributePicker`).
    """
    picker = self._value_picker
    if type(picker) is DefaultAttributePicker:
        return core_utils.get_value(value, key, None)
    if type(picker) is not XFormedAttributePicker:
        return original(self, value, key, shape)
    known = vars(shape).setdefault("possible_keys_and_transformers", {})
    if (type(value), key) not in known:
        keys = tuple(dict.fromkeys(picker.get_possible_keys(AttributePickerContext(value, key, shape))))
        transformers = picker.response_transformers.items()
        known[type(value), key] = keys, [pair for pair in transformers if key.endswith(pair[0].rpartition(".")[2])]
    possible_keys, transformers = known[type(value), key]
    for possible_key in possible_keys:
        attribute = core_utils.get_value(value, possible_key)
        if attribute is not MISSING:
            break
    else:
        attribute = None
    for path, transform in transformers:
        if ".".join((*self.path, key)).endswith(path):
            return transform(attribute)
    return attribute


@_SPEEDUPS.patches(xmltodict, "unparse")
def _write_xml(original: Original, document: Mapping[str, Any], **options: Any) -> str:
    """Write a response as XML.

    The library checks each character of each name, and writes each tag by several calls (xmltodict.py, `_emit`).
    """
    if options.get("pretty"):
        return str(original(document, **options))
    is_short, is_full = options.get("short_empty_elements", False), options.get("full_document", True)
    declaration = '<?xml version="1.0" encoding="utf-8"?>\n' if is_full else ""
    return declaration + "".join(_element(name, value, is_short) for name, value in document.items())


def _element(name: str, value: object, is_short: bool) -> str:
    """Return an element with its attributes, whose keys begin with `@`, and its content."""
    attributes, texts = "", []
    for key, child in value.items() if isinstance(value, dict) else (("#text", value),):
        if key.startswith("@"):
            attributes += f" {key[1:]}={quoteattr(str(child))}"
        elif key == "#text":
            texts.append(escape(_text(child)))
        else:
            texts += [_element(key, item, is_short) for item in (child if isinstance(child, list) else [child])]
    content = "".join(texts)
    return f"<{name}{attributes}/>" if is_short and not content else f"<{name}{attributes}>{content}</{name}>"


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
