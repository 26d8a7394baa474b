"""The project as a reader meets it: what its pages say exists, and its parts depend on each other as they say."""

from __future__ import annotations

import ast
import configparser
import json
import re
import sys
from functools import cache
from pathlib import Path

import click
import pytest
from sampled import SAMPLED_DRILLS, SAMPLED_ROWS

import cfngen
from cfngen.cli.application import application
from cfngen.cli.exit_codes import EXIT_CODE_MEANINGS
from cfngen.cluster.load import load, parse
from cfngen.deploy.aws.drift_commands import revert_commands
from cfngen.userdata import roles

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("benchmarks/*.md"),
    ]
)
LINKED = sorted([ROOT / "output/README.md", *ROOT.glob("tests/*/README.md")])
MODULES = sorted((ROOT / "cfngen").rglob("*.py"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def part(module: Path) -> str:
    return module.relative_to(ROOT / "cfngen").parts[0].removesuffix(".py")


@cache
def syntax_tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text())


def packages(module: Path) -> set[str]:
    """The top-level packages that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(syntax_tree(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return {each.partition(".")[0] for each in found}


def options(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts} | {"--help"}


@pytest.mark.parametrize("page", [*PAGES, *LINKED], ids=name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, target


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_of_the_pages_exist(page):
    context = click.Context(application)
    code = re.findall(r"`([^`\n]+)`|^    (.+)$", page.read_text(), re.MULTILINE)
    for line in (span or block for span, block in code):
        for called in re.findall(r"(?:^|[ /(])cfngen ([a-z]+[^#|]*)", line):
            words = called.split()
            command = application.get_command(context, words[0])
            if isinstance(command, click.Group) and len(words) > 1 and not words[1].startswith("-"):
                command = command.get_command(context, words[1].rstrip(";,.)`"))
            assert command, line
            assert {word.rstrip(".") for word in words if word.startswith("--")} <= options(command), line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_make_targets_of_the_pages_exist(page):
    rules = re.findall(r"^([a-z -]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    targets = {target for rule in rules for target in rule.split()}
    commands = re.findall(r"(?:^    |`)make ([a-z -]+)", page.read_text(), re.MULTILINE)
    assert {word for command in commands for word in command.split()} <= targets


def test_the_exit_codes_of_the_page_are_those_of_the_program():
    rows = dict(re.findall(r"^\| (\d+) \| (.*) \|$", (ROOT / "docs/reference/exit-codes.md").read_text(), re.MULTILINE))
    assert rows == {
        str(code): meaning.replace("--debug", "`--debug`").replace("templates --check", "`templates --check`")
        for code, meaning in EXIT_CODE_MEANINGS.items()
    }


def test_the_page_of_commands_has_every_command():
    listed = re.findall(r"^\| `cfngen ([a-z]+)", (ROOT / "docs/reference/commands.md").read_text(), re.MULTILINE)
    assert set(listed) == set(application.list_commands(click.Context(application)))


def test_the_first_page_is_read_over_a_coffee():
    assert len((ROOT / "README.md").read_text().split()) <= 900


def linked_pages(page):
    targets = re.findall(r"\]\(([^)\s#]+)", page.read_text())
    return {(page.parent / target).resolve() for target in targets if not target.startswith("https://")}


def test_every_page_is_within_two_links_of_the_index():
    index = ROOT / "docs/README.md"
    pages = set(ROOT.glob("docs/**/*.md"))
    # A page that the patterns of these tests miss is noticed by the number.
    assert len(pages) == 41
    near = {index} | linked_pages(index)
    near |= set().union(*(linked_pages(page) for page in near if page.suffix == ".md"))
    assert {name(page) for page in pages - near} == set()


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")], ids=name)
def test_a_page_begins_with_what_it_is_for(page):
    title, empty, first, *_ = page.read_text().splitlines()
    assert title.startswith("# ")
    assert empty == ""
    assert re.match(r"\w|`|\*Generated by `", first), "neither a list, a table, a block nor a heading, but a sentence"


def test_every_claim_about_a_thief_is_shown_by_tests_that_exist():
    page = (ROOT / "docs/operate/security.md").read_text()
    section = page.partition("\n## If something is stolen\n")[2].partition("\n## ")[0]
    rows = [
        line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ") and "shown by" not in line
    ]
    assert len(rows) > 30
    for kind, claim, shown in rows:
        assert kind.strip() in ("reaches", "not"), claim
        tests = [each.split("::") for each in re.findall(r"`([^`]+)`", shown)]
        assert tests, claim
        for file, test in tests:
            assert test in function_names(ROOT / "tests" / file), (claim, test)


@cache
def function_names(module: Path) -> frozenset[str]:
    return frozenset(node.name for node in ast.walk(syntax_tree(module)) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("row", [*SAMPLED_ROWS, *SAMPLED_DRILLS])
def test_what_is_run_less_often_exists(row):
    file, _, test = row.partition("::")
    assert any(node.startswith("test_") for node in function_names(ROOT / "tests" / file))
    assert not test or test in function_names(ROOT / "tests" / file)


def test_the_changelog_knows_this_version():
    assert f"\n## {cfngen.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def dotted(module: Path) -> str:
    return ".".join(module.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def runtime_imports(module: Path, code: ast.AST) -> set[str]:
    """The modules and names of modules that a module's code imports when it runs, in functions too."""
    names: set[str] = set()
    for node in ast.iter_child_nodes(code):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            folder = ".".join(module.relative_to(ROOT).parts[: -node.level]) if node.level else ""
            source = ".".join(filter(None, [folder, node.module]))
            names.update({source, *(f"{source}.{alias.name}" for alias in node.names)})
        elif is_type_checking(node):
            names |= set().union(*(runtime_imports(module, other) for other in getattr(node, "orelse", [])))
        elif not isinstance(node, ast.expr):  # most of a tree, and in no expression is an import
            names |= runtime_imports(module, node)
    return names


def test_no_modules_import_each_other_in_a_circle():
    modules = {dotted(module): module for module in MODULES}
    remaining = {
        module: {
            imported
            for imported in runtime_imports(path, syntax_tree(path)) & set(modules)
            # A module that imports a sibling names the package that both are in.
            if imported != module and not module.startswith(f"{imported}.")
        }
        for module, path in modules.items()
    }
    while without_imports := [module for module, imported in remaining.items() if not imported & set(remaining)]:
        for module in without_imports:
            del remaining[module]
    assert remaining == {}, "these modules, or modules that import them, are in a circle"


def called_name(function: ast.expr) -> str:
    """What is called: a name, or a name of `self`; "" for anything else."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self":
        return f"self.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def only_handed_on(function: ast.FunctionDef) -> set[str]:
    """The parameters of a function that it reads for nothing but to call itself with them."""
    parameters = {each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    nodes = list(ast.walk(function))
    reads = [node.id for node in nodes if isinstance(node, ast.Name)]
    handed: list[str] = []
    for node in nodes:
        # `super().__init__(…)` is another function of the same name.
        if isinstance(node, ast.Call) and called_name(node.func) in (function.name, f"self.{function.name}"):
            handed += [
                keyword.value.id
                for keyword in node.keywords
                if isinstance(keyword.value, ast.Name) and keyword.value.id == keyword.arg
            ]
    return {name for name in parameters & set(handed) if reads.count(name) == handed.count(name)}


def test_no_function_takes_what_it_only_hands_to_itself():
    functions = [
        (module, node)
        for module in MODULES
        for node in ast.walk(syntax_tree(module))
        if isinstance(node, ast.FunctionDef)
    ]
    dead = {f"{name(module)}:{node.name}": only_handed_on(node) for module, node in functions}
    assert {place: found for place, found in dead.items() if found} == {}


def test_an_installation_brings_exactly_the_packages_that_are_imported():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    required = settings["options"]["install_requires"]
    declared = {re.split(r"[ <>=!]", line)[0] for line in required.splitlines() if line}
    distributions = {"botocore": "boto3", "cfnlint": "cfn-lint", "yaml": "PyYAML"}
    distributions |= dict.fromkeys(("annotated_types", "pydantic_core"), "pydantic")
    # `boot` runs on instances, with what they have; what `sandbox` needs is an extra.
    modules = [each for each in MODULES if part(each) not in ("boot", "sandbox")]
    imported = set().union(*map(packages, modules)) - set(sys.stdlib_module_names) - {"cfngen"}
    assert {distributions.get(each, each) for each in imported} == declared


# What `common.yaml` of a folder says, the others of the folder extend.
CLUSTER_FILES = [file for file in sorted(ROOT.glob("examples/**/*.yaml")) if file.name != "common.yaml"]


@pytest.mark.parametrize("file", CLUSTER_FILES, ids=name)
def test_the_examples_are_cluster_files_without_warnings(file):
    assert load(file, environ={}).warnings == ()


def steps(file: dict[str, object]) -> dict[str, list[str]]:
    """The titles of what the instances of a cluster do at boot, by role and in order."""
    found = {each.role: json.loads(each.files["config.json"])["steps"] for each in roles(parse(file))}
    return {role: ["identity", *titles, "signal"] for role, titles in found.items()}


def drifted() -> dict[str, tuple[dict[str, object], dict[str, object] | None]]:
    """Properties in the template and in AWS, by type; together every command puts something back."""
    tags = ({"Tags": [{"Key": "a", "Value": "b"}]}, {"Tags": [{"Key": "c", "Value": "d"}]})
    rules = [{"IpProtocol": "-1", "CidrIp": cidr} for cidr in ("10.0.0.0/8", "0.0.0.0/0")]
    both_ways = [{"SecurityGroupIngress": [rule], "SecurityGroupEgress": [rule]} for rule in rules]
    sizes = [{"MinSize": n, "LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": str(n)}} for n in (1, 2)]
    route = {"RouteTableId": "rtb-1", "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1"}
    return {
        "AWS::AutoScaling::AutoScalingGroup": ({**sizes[0], **tags[0]}, {**sizes[1], **tags[1]}),
        "AWS::EC2::SecurityGroup": ({**both_ways[0], **tags[0]}, {**both_ways[1], **tags[1]}),
        "AWS::EC2::Route": (route, {}),
    }


def test_the_page_about_drift_names_the_rights_of_its_commands():
    [(kind, (route, _))] = [each for each in drifted().items() if each[0].endswith("Route")]
    commands = [*revert_commands(kind, "rtb-1", route, None, "us-west-2")]
    for kind, (expected, actual) in drifted().items():
        commands += revert_commands(kind, "sg-0123", expected, actual, "us-west-2")
    called = [re.match(r"aws (\w+) ([a-z-]+)", command) for command in commands]
    rights = {f"{call[1]}:{call[2].title().replace('-', '')}" for call in called if call}
    page = (ROOT / "docs/operate/operations.md").read_text()
    [line] = re.findall(r"^- The operator's policy has no rights for these commands.*?(?=^- )", page, re.DOTALL | re.M)
    assert set(re.findall(r"`((?:autoscaling|ec2):\w+)`", line)) == rights
    assert len(rights) == 12


def test_the_page_about_troubles_knows_every_step_and_its_number():
    text = (ROOT / "docs/operate/operations.md").read_text()
    commands = {"preBootCommands": ["true"], "postBootCommands": ["true"]}
    clusters = [
        steps({}),
        steps({"network": {"plugin": "amazon-vpc", "proxy": {"httpsProxy": "http://proxy.example.com:3128"}}}),
        steps(
            {
                "nodeGroups": [
                    {"instanceType": "g6.xlarge", "gpu": "nvidia", "prePulledImages": ["docker.io/library/nginx:1.29"]}
                ]
            }
        ),
        steps({"controlPlane": commands, "nodeGroups": [{"name": "nodes", "update": {"pause": 5}, **commands}]}),
        steps({"nodeGroups": [{"name": "nodes", "spotPrice": "0.05", "rebalanceRecommendation": "drain"}]}),
        steps({"nodeGroups": [{"name": "nodes", "volumes": [{"size": 10, "mountPath": "/data"}]}]}),
        steps({"serviceAccountIssuer": {}}),
        steps({"serviceAccountIssuer": {"signTokens": False}}),
    ]
    done = {title for cluster in clusters for titles in cluster.values() for title in titles}
    rows = re.search(r"### What a step's failure usually means\n\n.*\n\|---\|---\|\n((?:\|.*\n)+)", text)
    assert rows
    cells = re.findall(r"^\| ([^|]*) \|", rows[1], re.MULTILINE)
    told = [re.sub(r" \(.*\)", "", each.strip()) for cell in cells for each in cell.split(",")]
    assert sorted(told) == sorted(done)
    master = clusters[0]["master"]
    examples = re.findall(r"cfngen: \[(\d+)/(\d+)\] ([a-z -]+?)(?=:| FAILED)", text)
    assert examples
    assert examples == [(str(master.index(title) + 1), str(len(master)), title) for _, _, title in examples]
