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
from pathlib import Path
from typing import Any, cast

import aws_clients  # noqa: F401 - its import is what it is for
import pytest
from hypothesis import HealthCheck, settings

from cfngen import releases, templates
from cfngen.cluster.model import Cluster
from cfngen.deploy.access import certificates
from cfngen.lint.linter import Linter
from cfngen.releases import charts
from cfngen.sandbox.kubernetes import certificates as authorities
from cfngen.userdata import pack

# Of a test's rows, each so many-th is among those of `make test`; the others, and all of those of 0, are drills. They
# take seconds, and few find what the others do not.
SAMPLED_ROWS = {
    "aws/test_api_identity.py::test_a_private_clusters_policy_is_for_nat_gateways_and_endpoints_of_its_region": 0,
    "aws/test_templates_mutated.py::test_it_is_refused_or_comes_to_an_end": 0,
    "aws/test_templates_operations.py::test_a_failed_boot_rolls_everything_back_at_once": 4,
    "aws/test_templates_operations.py::test_an_address_the_subnet_cannot_give_rolls_everything_back": 3,
    "aws/test_updates_templates.py::test_a_parameter_changes_what_it_is_about": 4,
    "aws/test_updates_templates.py::test_the_same_templates_again_are_no_change": 3,
    "boot/test_boot_restore.py::test_power_cut_of_one_of_three_that_restore": 6,
    "cli/test_api_range.py::test_an_answer_goes_into_the_cluster_file": 2,
    "cli/test_bad_input.py::test_an_output_directory_that_is_a_file": 0,
    "cli/test_config.py::test_standard_input_is_called_what_it_is": 0,
    "cli/test_earlier_runs.py::test_whatever_is_changed_they_are_made_again": 3,
    "cli/test_init.py::test_an_example_goes_to_another_region_under_another_name": 4,
    "cli/test_kubeconfig_command.py::test_a_hostile_kubeconfig_is_refused_politely": 4,
    "cli/test_lint_command.py::test_the_example_for_cfn_lint_works": 0,
    "cli/test_pages.py::test_the_blocks_of_the_readme_run_as_printed": 0,
    "cli/test_pages.py::test_the_first_commands_of_the_help_run_as_printed": 0,
    "cli/test_render_layout.py::test_no_row_runs_together_and_nothing_that_is_copied_is_broken": 3,
    "cli/test_replace_command.py::test_without_a_terminal_nothing_is_terminated_unless_yes_is_said": 0,
    "cli/test_status_command.py::test_a_narrow_screen_tears_nothing_apart": 4,
    "cli/test_status_command.py::test_what_was_changed_by_hand_is_put_back_by_the_commands_of_drift": 0,
    "cli/test_templates_command.py::test_interrupted_while_reading_it_leaves_nothing": 0,
    "cli/test_templates_command.py::test_the_template_that_is_not_made_cannot_be_asked_for": 0,
    "cluster/documents/test_documents_of_the_cluster_file.py"
    "::test_an_editor_accepts_a_file_and_outputs_of_terraform_in_place_of_its_values": 5,
    "cluster/test_every_key_is_read.py::test_another_value_of_a_key_changes_what_is_made": 2,
    "deploy/operations/test_replace.py::test_a_type_that_cannot_run_the_master_is_refused_before_anything_changes": 3,
    "deploy/preflight/test_references.py::test_what_is_decided_once_does_not_follow_its_reference": 2,
    "deploy/test_whatever_aws_answers.py::test_complete_answers_are_read_without_an_error": 4,
    "deploy/test_whatever_aws_answers.py::test_whatever_aws_answers_is_read": 4,
    "deploy/watching/test_diagnosis.py::test_the_failure_in_each_nested_stack_of_a_cluster_is_named": 2,
    "deploy/watching/test_network_reasons.py::test_a_missing_endpoint_is_named": 3,
    "graph/test_drawing.py::test_no_permission_is_without_words": 5,
    "graph/test_layout.py::test_no_labels_touch_and_no_arrow_crosses_a_foreign_box": 4,
    "graph/test_svg.py::test_any_picture_is_valid_xml_and_a_page_that_keeps_texts_as_texts": 0,
    "lint/test_lint.py::test_a_known_verdict_needs_no_cfn_lint": 0,
    "lint/test_lint.py::test_a_process_that_loads_ahead_finds_the_same": 0,
    "lint/test_lint.py::test_nothing_is_loaded_ahead_that_is_not_needed": 0,
    "lint/test_lint.py::test_the_environment_does_not_change_the_verdict": 0,
    "lint/test_lint_rules.py::test_template_size": 0,
    "lint/test_lint_rules.py::test_the_command_loads_every_rule": 0,
    "matrix/test_matrix.py::test_a_run_has_two_thousand_combinations_that_differ": 0,
    "matrix/test_matrix.py::test_every_pair_of_values_that_go_together_is_lived": 0,
    "permissions/test_service_role_of_clusters.py::test_what_handlers_of_ec2_call_is_among_the_actions": 4,
    "permissions/test_service_role_of_clusters.py"
    "::test_what_the_templates_hold_may_be_made_tagged_and_nothing_else_made": 4,
    "sandbox/test_existing_parts.py::test_a_defect_of_what_exists_is_the_only_finding": 8,
    "sandbox/test_sandbox_api_dns.py"
    "::test_another_name_replaces_the_record_and_without_a_name_the_address_is_the_endpoint_again": 0,
    "sandbox/test_sandbox_api_dns.py::test_the_name_of_one_master_follows_to_the_load_balancer_of_three": 0,
    "sandbox/test_sandbox_backups.py::test_a_new_master_restores_what_it_is_asked_to_and_only_once": 0,
    "sandbox/test_sandbox_backups.py::test_no_snapshot_is_taken_while_no_master_runs": 0,
    "sandbox/test_sandbox_backups.py::test_one_more_comes_with_each_interval": 0,
    "sandbox/test_sandbox_backups.py::test_the_bucket_stays_when_the_stack_is_deleted": 0,
    "sandbox/test_sandbox_bastion.py::test_an_update_waits_for_nothing_of_the_bastion_and_keeps_its_address": 0,
    "sandbox/test_sandbox_boot_words.py::test_every_sentence_is_one_of_the_boot_program": 0,
    "sandbox/test_sandbox_boot_words.py::test_every_step_of_every_role_is_known": 0,
    "sandbox/test_sandbox_capacity_reservations.py::test_nothing_is_reserved_once_the_key_is_off": 0,
    "sandbox/test_sandbox_capacity_reservations.py::test_without_a_reservation_it_does_not_come_back": 0,
    "sandbox/test_sandbox_capacity_reservations.py"
    "::test_another_type_is_reserved_first_and_the_old_reservation_goes_last": 0,
    "sandbox/test_sandbox_interruptions.py::test_drain_service_meets_notice_and_termination_in_the_emulated_account": 4,
    "sandbox/test_sandbox_interruptions.py::test_an_instance_on_demand_ends_without_a_notice_and_is_replaced": 4,
    "sandbox/test_sandbox_interruptions.py::test_hook_does_not_hold_an_interrupted_instance": 2,
    "sandbox/test_sandbox_interruptions.py::test_instances_on_demand_are_told_nothing": 2,
    "sandbox/test_sandbox_interruptions.py::test_interrupted_instance_ends_after_two_minutes_and_is_replaced": 2,
    "sandbox/test_sandbox_interruptions.py::test_storm_over_a_whole_group_replaces_all_of_it": 2,
    "sandbox/test_sandbox_issuer_documents.py::test_first_master_publishes_the_documents": 2,
    "sandbox/test_sandbox_network_plugins.py::test_no_routes_are_made_and_balancers_find_the_network": 2,
    "sandbox/test_sandbox_pod_identity_webhook.py::test_it_runs_on_masters_until_it_is_turned_off": 0,
    "sandbox/test_sandbox_quorum.py::test_etcd_has_a_quorum_all_the_time_and_all_its_members_in_the_end": 0,
    "soak/test_drawn_clusters.py::test_a_life_goes_as_planned": 0,
    "soak/test_drawn_clusters.py::test_drawn_files_are_valid_and_give_templates_that_lint_accepts": 4,
    "soak/test_drawn_clusters.py::test_every_key_is_drawn": 5,
    "soak/test_drawn_clusters.py::test_every_key_of_a_design_is_drawn": 0,
    "templates/test_addon_ports.py::test_add_ons_open_what_nodes_ask_and_nothing_else": 3,
    "templates/test_existing_security_groups.py"
    "::test_whichever_groups_exist_no_template_has_a_parameter_that_nothing_uses": 4,
    "templates/test_limits.py::test_nested_stacks_of_a_maximal_cluster_fit": 0,
    "templates/test_service_account_roles.py::test_no_stack_has_a_parameter_that_nothing_uses": 4,
    "templates/test_user_text.py::test_text_comes_out_byte_for_byte": 5,
    "userdata/test_egress.py::test_every_host_of_user_data_and_templates_is_listed": 4,
    "userdata/test_userdata_documents.py::test_every_field_exists_and_is_of_its_kind": 4,
    "userdata/test_userdata_units.py::test_timers_have_what_they_start_and_start_what_there_is": 4,
}

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
    "golden/test_golden.py": 4,
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

# Reading a private key tries whether it is a right one, which takes 40 ms; every look at a cluster does so twice, and
# the keys of tests are the same few.
certificates._load_private_key = functools.cache(certificates._load_private_key)

# Generating the key of a cluster's authority takes 50 ms, and tests create hundreds of clusters. Those of one test have
# different keys, those of different tests the same few.
_generate_key = functools.cache(lambda _number, generate=authorities._new_key: generate())
_KEY_NUMBERS = itertools.cycle(range(16))
authorities._new_key = lambda: _generate_key(next(_KEY_NUMBERS))

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


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file without drills where only drills are asked for: it would be three quarters of them."""
    only_drills = config.option.markexpr.startswith(("drill", "soak")) and collection_path.name.startswith("test_")
    if not only_drills or any(row.startswith(f"{file_name(collection_path)}::") for row in SAMPLED_ROWS):
        return None
    return not re.search(r"\bmark\.(drill|soak)\b", collection_path.read_text("utf-8")) or None


def file_name(path: Path) -> str:
    """The name of a test file, as `SAMPLED_DRILLS` and `SAMPLED_ROWS` have it."""
    return path.relative_to(Path(__file__).parent).as_posix()


@pytest.hookimpl(tryfirst=True)  # before the marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give test modules an `all` that wants something to say it of; mark the drills, and those of `make soak` alone."""
    numbers: Counter[str] = Counter()
    for item in items:
        name = file_name(item.path)
        row = f"{name}::{item.originalname}" if isinstance(item, pytest.Function) else ""
        if row in SAMPLED_ROWS:
            if not SAMPLED_ROWS[row] or numbers[row] % SAMPLED_ROWS[row]:
                item.add_marker(pytest.mark.drill)
            numbers[row] += 1
        if name in SAMPLED_DRILLS and item.get_closest_marker("drill"):
            if not SAMPLED_DRILLS[name] or numbers[name] % SAMPLED_DRILLS[name]:
                item.add_marker(pytest.mark.soak)
            numbers[name] += 1
    for module in {id(module): module for item in items if (module := getattr(item, "module", None))}.values():
        module.__dict__.setdefault("all", all_of_some)


@pytest.hookimpl(tryfirst=True)  # before fixtures open accounts
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let moto draw the same ids in every run of a test: it lists resources in the order of their ids."""
    if "moto" in sys.modules:
        from moto.moto_api._internal import mock_random

        mock_random.seed(item.nodeid)
