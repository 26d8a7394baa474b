"""Loads a complete, validated `Cluster` from a file, the environment and flags; reports all problems at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cfngen.cluster.checks.secret_values import secrets_in_lines
from cfngen.cluster.file import layers, yaml_file
from cfngen.cluster.file.extended_file import KEY, read_extended_file
from cfngen.cluster.file.kept_file import MAX_BYTES, KeptFile
from cfngen.cluster.file.terraform_outputs import TerraformOutputs
from cfngen.cluster.file.validation import Origin, ValidationResult
from cfngen.cluster.kube_up import assignments_of_environment
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path as KeyPath
from cfngen.cluster.problems import NO_KEY, ClusterFileError, Problem, Source, ordered

__all__ = ["ClusterFileError", "Loaded", "Origin", "load", "parse"]


@dataclass(frozen=True)
class Loaded:
    """A loaded cluster with the origins of its values.

    Attributes:
        origins: origin of every value that is not a section, by its dotted key path, e.g. `network.subnets[0].cidr`.
        warnings: messages about what is allowed but may not be intended.
        kept_file: what a stack keeps of what was read.
        digests: SHA-256 of the bytes of each file that was read, by its path.
    """

    cluster: Cluster
    origins: Mapping[str, Origin]
    kept_file: KeptFile
    warnings: tuple[str, ...] = ()
    digests: Mapping[Path, str] = field(default_factory=dict)


def load(path: Path | None, *, environ: Mapping[str, str], overrides: Sequence[str] = ()) -> Loaded:
    """Return the cluster of a file, kube-up's environment variables and `--set` arguments, completed and checked.

    Args:
        path: the cluster file; None gives the default cluster.
        overrides: `--set` arguments such as `nodeGroups[0].maxSize=6`; the last one wins.

    Raises:
        ClusterFileError: with all problems.
    """
    file = Source(kind="file", name=str(path)) if path else None
    file_content = yaml_file.read(path) if path else None
    extended = read_extended_file(path, file_content) if path and file_content else None
    merged = layers.MergedValues(file_content, file_name=file.name if file else "")
    if extended:
        del merged.data[KEY]
        merged.extend(extended[1], str(extended[0]))
    environment_assignments, environment_problems = assignments_of_environment(environ)
    flag_assignments, flag_problems = layers.parse_overrides(overrides)
    if file_content and "name" in file_content.data and file_content.data["name"] is None:
        # Of the keys without a value, which stand for their defaults, this one would name another cluster.
        environment_problems.append(Problem(("name",), "has no value; write the cluster's name, or remove the key"))
    # Flags are applied last: they replace values of the environment.
    problems = [*environment_problems, *merged.apply(environment_assignments)]
    problems += [*flag_problems, *merged.apply(flag_assignments)]

    unreadable: dict[KeyPath, str] = {}
    outputs = TerraformOutputs(path.parent if path else Path())
    data = outputs.replace(merged.data, unreadable)
    result = ValidationResult(data, file=file, sources=merged.sources, unreadable=unreadable)
    cluster = result.cluster(problems)
    if file_content and (secrets := tuple(secrets_in_lines(file_content.content.decode("utf-8-sig"), str(path)))):
        raise ClusterFileError(secrets)
    warnings = [
        *_warnings_of_assignments_without_effect(merged),
        *_warnings_of_replacements(merged, file),
        *result.warnings(cluster),
    ]
    if file_content and len(file_content.content) > MAX_BYTES:
        message = f"has more than {MAX_BYTES:,} bytes, so the stack will not keep it; shorten it, or keep a copy"
        warnings.append(Problem(NO_KEY, message, source=file))
    digests = {**({path: file_content.digest} if path and file_content else {}), **outputs.digests}
    digests |= {extended[0]: extended[1].digest} if extended else {}
    texts = tuple(str(warning) for warning in ordered(warnings))
    return Loaded(cluster, result.origins(cluster), KeptFile(file_content, merged, cluster.name), texts, digests)


def parse(data: Mapping[str, object]) -> Cluster:
    """Return the cluster that plain data describes, completed, validated and cross-checked.

    Raises:
        ClusterFileError: with all problems.
    """
    return ValidationResult(layers.without_nulls(data)).cluster()


def _warnings_of_assignments_without_effect(merged: layers.MergedValues) -> list[Problem]:
    message = "has no effect, for nodeGroups is empty; add a group to it"
    return [Problem(NO_KEY, message, source=assignment.source) for assignment in merged.assignments_without_effect]


def _warnings_of_replacements(merged: layers.MergedValues, file: Source | None) -> list[Problem]:
    """Return warnings about environment variables that change the file's values; they may be for another cluster."""
    advice = "unset the variable if it was meant for another cluster, or leave the environment out with --no-env"
    problems = [
        Problem(replacement.path, f"replaces what {replacement.file_line} says; {advice}", source=replacement.variable)
        for replacement in merged.replacements
    ]
    vpc_id_path = ("network", "vpc", "id")
    vpc_id_source = merged.sources.get(vpc_id_path)
    if file and vpc_id_source and vpc_id_source.kind == "environment" and not problems:
        message = f"takes an existing VPC, of which {file.name} says nothing; {advice}"
        problems.append(Problem(vpc_id_path, message, source=vpc_id_source))
    return problems
