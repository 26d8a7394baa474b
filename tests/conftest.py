"""What all tests share."""

from __future__ import annotations

import builtins
import functools
import gc
import hashlib
import itertools
import os
import pickle
import re
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import botocore.client
import botocore.hooks
import botocore.httpsession
import botocore.parsers
import botocore.regions
import botocore.session
import botocore.useragent
import pytest
from _pytest.assertion import rewrite
from botocore import auth
from botocore.utils import parse_timestamp
from dateutil.tz import tzutc
from hypothesis import HealthCheck, settings

from cfngen import releases, templates
from cfngen.cluster.model import Cluster
from cfngen.deploy.access import certificates
from cfngen.lint.linter import Linter
from cfngen.releases import charts
from cfngen.sandbox.kubernetes import certificates as authorities
from cfngen.userdata import pack

# Of a file's drills, each so many-th is among those of `make drills`; all of them, and those of 0, are in `make soak`.
# They are many rows of one kind, of which few find what the others do not.
SAMPLED_DRILLS = {
    "aws/test_templates_depends_on.py": 6,
    "aws/test_wrong_templates.py": 2,
    "boot/test_boot_power_cut.py": 3,
    "cli/test_application.py": 5,
    "cli/test_delete_command.py": 2,
    "cli/test_deploy_command.py": 2,
    "cli/test_examples.py": 2,
    "cli/test_status_walk.py": 0,
    "deploy/aws/test_stale_groups.py": 2,
    "deploy/operations/test_attaching.py": 2,
    "deploy/operations/test_bastion_deployed.py": 2,
    "deploy/operations/test_deletion.py": 2,
    "deploy/operations/test_deletion_interrupted.py": 2,
    "deploy/operations/test_etcd_commands.py": 2,
    "deploy/operations/test_operation.py": 2,
    "deploy/operations/test_pause.py": 2,
    "deploy/operations/test_pause_lives.py": 4,
    "deploy/operations/test_phases.py": 2,
    "deploy/operations/test_recovery.py": 2,
    "deploy/operations/test_retrying.py": 2,
    "deploy/plan/test_private_network_updates.py": 2,
    "deploy/plan/test_update_from_earlier.py": 3,
    "deploy/preflight/test_foundations.py": 4,
    "deploy/preflight/test_security_groups_changed.py": 2,
    "deploy/test_whatever_aws_answers.py": 4,
    "golden/test_golden.py": 6,
    "golden/test_golden_lint.py": 16,
    "rehearse/test_rehearsal_recorded.py": 2,
    "rehearse/test_rehearsal_stops.py": 4,
    "sandbox/test_sandbox_order.py": 3,
    "sandbox/test_sandbox_updates_in_batches.py": 2,
    "soak/test_drawn_clusters.py": 2,
    "userdata/test_user_data_diff.py": 6,
}


# `make test` tells these to whatever it starts; a make that a test starts would take them for its own.
for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
    os.environ.pop(name, None)

# Drawn examples are the same each time, and a busy machine may take its time for them.
settings.register_profile(
    "same on every machine", derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("same on every machine")

# The models of botocore and moto are millions of objects that stay: looking through them after every few hundred new
# ones takes a fifth of the suite's time.
gc.set_threshold(100_000, 50, 100)

# Tests make hundreds of sessions, and each would read megabytes of service models anew.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)

# Reading a private key tries whether it is a right one, which takes 40 ms; every look at a cluster does so twice, and
# the keys of tests are the same few.
certificates._load_private_key = functools.cache(certificates._load_private_key)

# Generating the key of a cluster's authority takes 50 ms, and tests create hundreds of clusters. Those of one test have
# different keys, those of different tests the same few.
_generate_key = functools.cache(lambda _number, generate=authorities._new_key: generate())
_KEY_NUMBERS = itertools.cycle(range(16))
authorities._new_key = lambda: _generate_key(next(_KEY_NUMBERS))

# Clients of boto3 rename events by one list, which each new client would go through anew for every name.
_EVENT_NAMES: dict[str, str] = {}
_make_event_aliaser = botocore.hooks.EventAliaser.__init__


def _share_event_names(self: Any, *arguments: Any, **keywords: Any) -> None:
    _make_event_aliaser(self, *arguments, **keywords)
    if self._event_aliases == botocore.hooks.EVENT_ALIASES:
        self._alias_name_cache = _EVENT_NAMES


botocore.hooks.EventAliaser.__init__ = _share_event_names

# Each session asks of hundreds of handlers whether they take further arguments.
_accepts_kwargs = functools.lru_cache(1024)(botocore.hooks.accepts_kwargs)
botocore.hooks.accepts_kwargs = lambda handler: _accepts_kwargs(getattr(handler, "__func__", handler))


# Each client copies the tree of the session's handlers, list by list.
def _copy_handlers(self: Any, node: dict[str, Any]) -> dict[str, Any]:
    return {
        key: botocore.hooks.NodeList(*(handlers[:] for handlers in value))
        if isinstance(value, botocore.hooks.NodeList)
        else _copy_handlers(self, value)
        if isinstance(value, dict)
        else value
        for key, value in node.items()
    }


botocore.hooks._PrefixTrie._recursive_copy = _copy_handlers

# Each client would read the rules by which its service has endpoints, and follow them for its first request.
_make_endpoint_provider = botocore.regions.EndpointProvider
_ENDPOINT_PROVIDERS: dict[tuple[int, ...], tuple[Any, object]] = {}


def _endpoint_provider(**data: Any) -> Any:
    # By the identity of the data, which the loader of all sessions keeps, and so does the entry.
    key = tuple(map(id, data.values()))
    if key not in _ENDPOINT_PROVIDERS:
        _ENDPOINT_PROVIDERS[key] = _make_endpoint_provider(**data), data
    return _ENDPOINT_PROVIDERS[key][0]


botocore.regions.EndpointProvider = _endpoint_provider

# Each client would look up again what the shapes of its service are.
_load_service_model = botocore.client.ClientCreator._load_service_model
_SERVICE_MODELS: dict[tuple[str, str | None], Any] = {}


def _load_service_model_once(self: Any, service_name: str, api_version: str | None = None) -> Any:
    if (service_name, api_version) not in _SERVICE_MODELS:
        _SERVICE_MODELS[service_name, api_version] = _load_service_model(self, service_name, api_version)
    return _SERVICE_MODELS[service_name, api_version]


botocore.client.ClientCreator._load_service_model = _load_service_model_once

# A client's class has a method for each operation of its service, and EC2 has seven hundred; each client would make
# them anew.
_create_methods = botocore.client.ClientCreator._create_methods
_create_name_mapping = botocore.client.ClientCreator._create_name_mapping
_METHODS: dict[tuple[str, str], tuple[dict[str, Any], dict[str, str]]] = {}


def _methods_and_names(self: Any, service_model: Any) -> tuple[dict[str, Any], dict[str, str]]:
    service = (service_model.service_name, service_model.api_version)
    if service not in _METHODS:
        _METHODS[service] = (_create_methods(self, service_model), _create_name_mapping(self, service_model))
    return _METHODS[service]


botocore.client.ClientCreator._create_methods = lambda self, model: dict(_methods_and_names(self, model)[0])
botocore.client.ClientCreator._create_name_mapping = lambda self, model: dict(_methods_and_names(self, model)[1])

# A context for encrypted connections takes a millisecond; each client would make its own, and none connects to AWS.
botocore.httpsession.create_urllib3_context = functools.cache(botocore.httpsession.create_urllib3_context)

# Nobody reads what kind of client asks, which each request would put together anew.
botocore.useragent.UserAgentString.to_string = lambda self: "tests"

_SHARED_FOLDERS: list[Path] = []


@pytest.fixture(scope="session", autouse=True)
def _share_what_is_made(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the processes of one run (`--numprocesses`) take what another has made."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tmp_path_factory.getbasetemp().parent / "shared"
        folder.mkdir(exist_ok=True)
        _SHARED_FOLDERS.append(folder)


def _made_once(key: str, make: Callable[[], bytes]) -> bytes:
    """Make something, unless another process of the run has."""
    if not _SHARED_FOLDERS:
        return make()
    file = _SHARED_FOLDERS[0] / key
    if not file.exists():
        written = file.with_suffix(f".{os.getpid()}")
        written.write_bytes(make())
        written.rename(file)
    return file.read_bytes()


# Compressing a boot program takes 25 ms. cfngen keeps the last few, which are enough for one cluster; tests have
# hundreds, most of them again and again.
_compress = pack._compress
_PACKED: dict[str, str] = {}


def _compress_once(text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()  # the texts themselves would take 100 MB
    if digest not in _PACKED:
        _PACKED[digest] = _made_once(digest, lambda: _compress(text).encode()).decode()
    return _PACKED[digest]


pack._compress = _compress_once

# Most tests are about the same few clusters: the default one, and those of the golden cases.
_GENERATED: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
_KEPT_CLUSTERS = 300
_CATALOGUES = (releases._components, charts.charts)
_generate = templates.generate


def _generate_for_all(cluster: Cluster, key: tuple[object, ...]) -> bytes:
    """Generate the pickled templates of a cluster, unless another process of the run has."""
    if key[1:] != _CATALOGUES:
        return pickle.dumps(_generate(cluster))
    return _made_once(hashlib.sha256(str(key[0]).encode()).hexdigest(), lambda: pickle.dumps(_generate(cluster)))


@functools.wraps(_generate)
def _generate_once(cluster: Cluster) -> tuple[templates.Document, ...]:
    """Generate the templates of a cluster once, and return a copy of its own to everybody who asks."""
    # The boot test has catalogues of its own, whose digests are those of its stand-ins.
    key = (cluster.model_dump_json(), releases._components, charts.charts)
    if key not in _GENERATED:
        _GENERATED[key] = _generate_for_all(cluster, key)
        if len(_GENERATED) > _KEPT_CLUSTERS:
            _GENERATED.popitem(last=False)
    _GENERATED.move_to_end(key)
    return cast("tuple[templates.Document, ...]", pickle.loads(_GENERATED[key]))


# Where it is recorded which functions each test calls (tests/mutants/calls.py), each test calls them itself.
if not hasattr(builtins, "__cfngen_called__"):
    templates.generate = _generate_once

# cfngen loads the rules of cfn-lint once per command; tests call lint hundreds of times. cfn-lint itself is imported
# by few tests, and by no others.
_make_linter = Linter.__init__


def _share_rules(self: Linter, region: str, workplace: Path) -> None:
    from cfnlint.rules import Rules

    if not isinstance(Rules.create_from_directory, functools._lru_cache_wrapper):
        Rules.create_from_directory = functools.cache(Rules.create_from_directory)
    _make_linter(self, region, workplace)


Linter.__init__ = _share_rules  # type: ignore[method-assign]


# Each request would be signed, which takes a seventh of its time; nobody in these processes checks a signature, but the
# emulator reads whose credentials they are.
_add_auth = auth.SigV4Auth.add_auth


def _name_credentials(self: Any, request: Any) -> None:
    if type(self) not in (auth.SigV4Auth, auth.S3SigV4Auth) or self.credentials is None:
        _add_auth(self, request)
        return
    request.context["timestamp"] = auth.get_current_datetime().strftime(auth.SIGV4_TIMESTAMP)
    self._modify_request_before_signing(request)
    credential = f"Credential={self.scope(request)}, SignedHeaders=host;x-amz-date, Signature=unsigned"
    request.headers["Authorization"] = f"AWS4-HMAC-SHA256 {credential}"


auth.SigV4Auth.add_auth = _name_credentials


def _timestamp(value: Any) -> datetime:
    """Read a time of an answer as botocore does, but the form that all of moto's have without guessing at forms."""
    if isinstance(value, str) and value.endswith("Z") and "T" in value:
        try:
            return datetime.fromisoformat(value[:-1]).replace(tzinfo=tzutc())
        except ValueError:
            pass
    return parse_timestamp(value)


botocore.parsers.DEFAULT_TIMESTAMP_PARSER = _timestamp

# The name of each element of an answer would lose its namespace by a regular expression.
botocore.parsers.BaseXMLResponseParser._node_tag = lambda self, node: node.tag.rpartition("}")[2]


# Of a structure that may have sixty members, and has five, each would be asked anew how it is called in XML.
_parse_structure = botocore.parsers.BaseXMLResponseParser._handle_structure


def _members_by_element(parser: Any, shape: Any) -> list[tuple[str, str, Any]] | None:
    """Return what the children of an element stand for; None for structures with parts in other places, and errors."""
    members = shape.members.values()
    has_other_places = any({"location", "eventheader", "xmlAttribute"} & {*each.serialization} for each in members)
    if has_other_places or shape.is_tagged_union or shape.metadata.get("exception"):
        return None
    return [(parser._member_key_name(member, name), name, member) for name, member in shape.members.items()]


def _parse_known_structure(self: Any, shape: Any, node: Any) -> Any:
    kept = vars(shape)
    if "members_by_element" not in kept:
        kept["members_by_element"] = _members_by_element(self, shape)
    if kept["members_by_element"] is None:
        return _parse_structure(self, shape, node)
    elements = self._build_name_to_xml_node(node)
    return {
        name: self._parse_shape(member, elements[element])
        for element, name, member in kept["members_by_element"]
        if element in elements
    }


botocore.parsers.BaseXMLResponseParser._handle_structure = _parse_known_structure


def all_of_some(values: Iterable[Any]) -> bool:
    """`all` for tests: of nothing at all everything is true, and a test that says so of nothing tests nothing."""
    __tracebackhide__ = True
    some = False
    for value in values:
        some = True
        if not value:
            return False
    if not some:
        pytest.fail("all() of nothing: what it says things of is not there")
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each process of a run rewrite the assertions of some test modules, half of the time that collecting takes.

    Each would rewrite all of them. Who comes to a module that is not rewritten yet does it then, as without this.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode:
        return
    places = [Path(argument.partition("::")[0]) for argument in session.config.args]
    files = sorted({file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))})
    state = session.config.stash[rewrite.assertstate_key]
    for file in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        folder = rewrite.get_cache_dir(file.resolve())
        cached = folder / f"{file.stem}{rewrite.PYC_TAIL}"
        folder.mkdir(exist_ok=True)
        if rewrite._read_pyc(file.resolve(), cached) is None:
            status, code = rewrite._rewrite_test(file.resolve(), session.config)
            rewrite._write_pyc(state, code, status, cached)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file without drills where only drills are asked for: it would be three quarters of them."""
    only_drills = config.option.markexpr.startswith(("drill", "soak")) and collection_path.name.startswith("test_")
    if only_drills and not re.search(r"\bmark\.(drill|soak)\b", collection_path.read_text("utf-8")):
        return True
    return None


@pytest.hookimpl(tryfirst=True)  # before the marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give test modules an `all` that wants something to say it of; mark the drills that `make drills` leaves out."""
    numbers: Counter[str] = Counter()
    for item in items:
        name = "/".join(item.path.parts[len(Path(__file__).parent.parts) :])
        if name in SAMPLED_DRILLS and item.get_closest_marker("drill"):
            if not SAMPLED_DRILLS[name] or numbers[name] % SAMPLED_DRILLS[name]:
                item.add_marker(pytest.mark.soak)
            numbers[name] += 1
    for module in {id(module): module for item in items if (module := getattr(item, "module", None))}.values():
        module.__dict__.setdefault("all", all_of_some)
