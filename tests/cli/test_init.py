"""`cfngen init`."""

from __future__ import annotations

import errno
import io
import json
import os
import re
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from cfngen.cli.commands.init import FileExistsAlreadyError, write_new_file
from cfngen.cluster.documents import examples
from cfngen.cluster.load import load

SCHEMA_LINE = "# yaml-language-server: $schema=cluster.schema.json"


@pytest.fixture
def typing(cfngen, monkeypatch):
    """Runs `cfngen init FILE…` on a terminal where somebody types these lines; then the input ends."""

    def run(*lines, arguments=("init",)):
        answers = io.StringIO("".join(f"{line}\n" for line in lines))
        monkeypatch.setattr(answers, "isatty", lambda: True, raising=False)
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdin", answers)
            return cfngen(*arguments)

    return run


@pytest.fixture
def opening(monkeypatch):
    """Lets a function open the file of a name, in place of `Path.open`."""

    @contextmanager
    def replaced(name, function):
        real = Path.open
        with monkeypatch.context() as patch:
            patch.setattr(
                Path, "open", lambda path, *args, **kw: (function if path.name == name else real)(path, *args, **kw)
            )
            yield

    return replaced


def test_it_writes_a_cluster_file_that_is_the_default_cluster(cfngen, directory):
    ran = cfngen("init")
    assert ran.code == 0
    assert "Wrote cluster.yaml" in ran.out
    assert "cfngen templates" in ran.out
    written = json.loads(cfngen("config", "--output", "json").out)["cluster"]
    default = json.loads(cfngen("config", "--defaults", "--output", "json").out)["cluster"]
    assert written == default


def test_it_writes_to_another_name_and_says_how_to_use_it(cfngen, directory):
    ran = cfngen("init", "staging.yaml")
    assert ran.code == 0
    assert (directory / "staging.yaml").exists()
    assert "cfngen templates -f staging.yaml" in ran.out


def test_it_never_overwrites(cfngen, directory):
    (directory / "cluster.yaml").write_text("name: mine\n")
    ran = cfngen("init")
    assert ran.code == 1
    assert "cluster.yaml already exists and was not changed" in ran.err
    assert "choose another name" in ran.err
    assert (directory / "cluster.yaml").read_text() == "name: mine\n"


def test_it_does_not_follow_a_dangling_link(cfngen, directory):
    (directory / "cluster.yaml").symlink_to(directory / "elsewhere.yaml")
    assert cfngen("init").code == 1
    assert not (directory / "elsewhere.yaml").exists()


def test_a_directory_that_does_not_exist_is_named(cfngen, directory):
    ran = cfngen("init", "nowhere/cluster.yaml")
    assert ran.code == 1
    assert ran.err == (
        "error: nowhere/cluster.yaml cannot be written: there is no directory nowhere\n"
        "hint: create it first: `mkdir -p nowhere`.\n"
    )


def test_a_directory_below_a_file(cfngen, directory):
    (directory / "file").write_text("mine")
    ran = cfngen("init", "file/cluster.yaml")
    assert ran.code == 1
    assert "a part of file is a file\nhint: choose another directory" in ran.err


def test_a_directory_that_may_not_be_written(cfngen, directory, opening):
    def refuse(path, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    with opening("cluster.yaml", refuse):
        ran = cfngen("init")
    assert ran.code == 1
    assert ran.err.startswith(
        "error: cluster.yaml cannot be written: you have no permission to write to this directory\nhint: "
    )


def test_a_full_disk_leaves_nothing(cfngen, directory, opening):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def made(path, *_, **__):
        path.touch()
        return Full()

    with opening("cluster.yaml", made):
        ran = cfngen("init")
    assert ran.code == 1
    assert ran.err.startswith("error: cluster.yaml cannot be written: no space left on device\nhint: ")
    assert list(directory.iterdir()) == []


def test_without_room_for_the_schema_there_is_no_cluster_file(cfngen, directory, monkeypatch):
    def full(**_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("cfngen.atomic_files.tempfile.mkstemp", full)
    ran = cfngen("init")
    assert ran.code == 1
    assert ran.err.startswith("error: cluster.schema.json cannot be written: no space left on device\nhint: ")
    assert list(directory.iterdir()) == []


def test_nothing_is_left_when_writing_fails(directory):
    with pytest.raises(UnicodeEncodeError):
        write_new_file(directory / "cluster.yaml", "name: \udcff\n")
    assert list(directory.iterdir()) == []


def test_two_at_once_cannot_both_win(directory):
    write_new_file(directory / "cluster.yaml", "name: first\n")
    with pytest.raises(FileExistsAlreadyError):
        write_new_file(directory / "cluster.yaml", "name: second\n")
    assert (directory / "cluster.yaml").read_text() == "name: first\n"


def test_the_schema_is_beside_the_file_and_accepts_it(cfngen, directory):
    for name in examples.names():
        assert cfngen("init", f"{name}.yaml", "--from", name).code == 0
        text = (directory / f"{name}.yaml").read_text()
        assert text == f"{SCHEMA_LINE}\n{examples.without_placeholders(examples.text_of(name))}"
        schema = json.loads((directory / "cluster.schema.json").read_text())
        Draft7Validator(schema).validate(yaml.safe_load(text))
    assert (directory / "cluster.schema.json").read_text() == cfngen("schema").out


def test_a_schema_of_an_earlier_version_is_written_again(cfngen, directory):
    (directory / "cluster.schema.json").write_text('{"$id": "urn:cfngen:cluster"}')
    assert cfngen("init").code == 0
    assert "properties" in json.loads((directory / "cluster.schema.json").read_text())


@pytest.mark.parametrize("content", ['{"$id": "urn:mine"}', "[]", "no JSON"])
def test_a_file_in_the_place_of_the_schema_stays(cfngen, directory, content):
    (directory / "cluster.schema.json").write_text(content)
    ran = cfngen("init")
    assert ran.code == 0
    assert ran.err == (
        "warning: cluster.schema.json is not cfngen's and was not changed, so cluster.yaml does not name a schema for "
        "editors.\n"
    )
    assert (directory / "cluster.schema.json").read_text() == content
    assert SCHEMA_LINE not in (directory / "cluster.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "region"),
    [
        *((name, "ap-southeast-2") for name in examples.names()),
        *((name, "us-gov-east-1") for name in examples.names() if name != "gpu-spot"),
    ],
)
def test_an_example_goes_to_another_region_under_another_name(cfngen, directory, name, region):
    assert cfngen("init", "--from", name, "--name", "blue", "--region", region).code == 0
    loaded = load(Path("cluster.yaml"), environ={})
    assert loaded.warnings == ()
    assert (loaded.cluster.name, loaded.cluster.region) == ("blue", region)
    example = load(Path(examples.__file__).parents[2] / "examples" / f"{name}.yaml", environ={}).cluster
    letters = [subnet.zone[-1] for subnet in example.network.subnets]
    assert [subnet.zone for subnet in loaded.cluster.network.subnets] == [region + letter for letter in letters]
    # Nothing else has changed, comments included.
    text = Path("cluster.yaml").read_text().replace(region, example.region).replace("arn:aws-us-gov:", "arn:aws:")
    for instance_type, similar_type in examples.replaced_types(examples.text_of(name), region).items():
        text = text.replace(similar_type, instance_type)
    expected = examples.without_placeholders(examples.text_of(name))
    assert text.replace("name: blue", f"name: {example.name}") == f"{SCHEMA_LINE}\n{expected}"


def test_the_page_of_commands_lists_every_example():
    page = (Path(examples.__file__).parents[3] / "docs" / "reference" / "commands.md").read_text()
    [listed] = re.findall(r"starts from an example: (.*) \|", page)
    assert sorted(re.split(", | or ", listed)) == sorted(examples.names())


@pytest.mark.parametrize("name", ["kube-up", "hardened", "existing-everything"])
def test_an_example_gets_the_path_of_its_roles(cfngen, name):
    assert cfngen("init", "--from", name, "--iam-path", "/team/kubernetes/").code == 0
    loaded = load(Path("cluster.yaml"), environ={}).cluster
    assert loaded.iam.path == "/team/kubernetes/"
    example = load(Path(examples.__file__).parents[2] / "examples" / f"{name}.yaml", environ={}).cluster
    assert loaded.iam.permissions_boundary == example.iam.permissions_boundary


def test_ranges_for_documentation_are_no_answer_to_who_may_reach_the_api(cfngen):
    assert cfngen("init", "--from", "production").code == 0
    assert load(Path("cluster.yaml"), environ={}).cluster.api.allowed_cidrs == ()


def test_types_that_a_region_lacks_are_replaced_by_similar_ones_and_zones_are_to_be_checked(cfngen):
    ran = cfngen("init", "--from", "production", "--region", "ap-southeast-4")
    assert ran.code == 0
    assert "ap-southeast-4 does not offer m6i.large: the file has m7i.large instead.\n" in ran.out
    assert "Its zones are ap-southeast-4a, ap-southeast-4b, ap-southeast-4c; not every region has these" in ran.out
    assert load(Path("cluster.yaml"), environ={}).cluster.control_plane.instance_type == "m7i.large"


def test_what_a_region_lacks_for_good_is_to_be_changed_in_the_file(cfngen, directory):
    ran = cfngen("init", "--from", "gpu-spot", "--region", "eu-west-1")
    assert ran.code == 0
    assert "warning: change this in the file: nodeGroups[1].instanceTypes[0]: g6.xlarge is not offered in" in ran.err
    assert (directory / "cluster.yaml").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from", "prod"), "there is no example 'prod'; did you mean 'production'?"),
        (("--from", "xyzzy"), "there is no example 'xyzzy'; there are existing-everything, existing-vpc,"),
        (("--name", "Blue"), "name: 'Blue' is not a cluster name"),
        (
            ("--iam-path", "kubernetes"),
            "iam.path: 'kubernetes' is not a path of IAM names between slashes such as /kuber",
        ),
        (("--iam-path", f"/{'a' * 511}/"), "it has 513 characters; 512 fit"),
        (("--region", "us-wets-2"), "region: AWS has no region us-wets-2; did you mean us-west-2"),
        (("cluster.schema.json",), "cluster.schema.json is the name of the schema; choose another name"),
    ],
)
def test_an_example_that_cannot_be_so_is_not_written(cfngen, tree, options, message):
    ran = cfngen("init", *options)
    assert ran.code != 0
    assert message in ran.err
    assert tree() == {}


def test_help_says_what_each_example_is_for(cfngen):
    help_text = cfngen("init", "--help").out
    for name in examples.names():
        assert examples.description_of(name)[-1].isalnum()
        assert f"{name} " in help_text
        assert examples.description_of(name) in help_text


def test_a_terminal_is_asked_for_the_cluster(typing, directory):
    ran = typing("production", "blue", "eu-west-1", "eu-west-1c, eu-west-1a eu-west-1b", "203.0.113.7/32 10.0.0.0/8")
    assert ran.code == 0
    cluster = load(Path("cluster.yaml"), environ={}).cluster
    assert (cluster.name, cluster.region) == ("blue", "eu-west-1")
    assert [subnet.zone[-1] for subnet in cluster.network.subnets] == ["c", "a", "b"]
    assert [str(subnet.cidr) for subnet in cluster.network.subnets] == ["10.40.0.0/22", "10.40.4.0/22", "10.40.8.0/22"]
    # The group for batch work was in the zones of the second and third subnet.
    assert cluster.node_groups[1].zones == ("eu-west-1a", "eu-west-1b")
    assert [str(cidr) for cidr in cluster.api.allowed_cidrs] == ["203.0.113.7/32", "10.0.0.0/8"]
    assert "# a zone that fails takes no other zone's way out with it" in Path("cluster.yaml").read_text()


@pytest.mark.parametrize("name", examples.names())
def test_enter_takes_the_example_as_it_is_but_for_placeholders(typing, directory, name):
    number = examples.names().index(name) + 1
    assert typing(number, "", "", "", "").code == 0
    cluster = load(Path("cluster.yaml"), environ={}).cluster
    example = examples.cluster_of(examples.text_of(name))
    # Ranges of the documentation are nobody's.
    expected = [] if name in ("production", "gpu-spot") else list(example.api.allowed_cidrs)
    assert list(cluster.api.allowed_cidrs) == expected
    assert cluster.model_copy(update={"api": example.api}) == example


@pytest.mark.parametrize("name", examples.names())
def test_every_answer_may_be_another_one(typing, directory, name):
    zones = [f"ap-northeast-1{letter}" for letter in "cda"]
    count = len(examples.cluster_of(examples.text_of(name)).network.subnets)
    assert typing(name, "blue", "ap-northeast-1", " ".join(zones[:count]), "192.168.0.0/24").code == 0
    loaded = load(Path("cluster.yaml"), environ={})
    assert loaded.warnings == ()
    assert (loaded.cluster.name, loaded.cluster.region) == ("blue", "ap-northeast-1")
    assert [subnet.zone for subnet in loaded.cluster.network.subnets] == zones[:count]
    assert [str(cidr) for cidr in loaded.cluster.api.allowed_cidrs] == ["192.168.0.0/24"]


def test_an_example_without_subnets_takes_any_number_of_zones(typing, directory):
    assert typing("", "", "", "us-west-2b us-west-2a", "").code == 0
    cluster = load(Path("cluster.yaml"), environ={}).cluster
    assert [subnet.zone for subnet in cluster.network.subnets] == ["us-west-2b", "us-west-2a"]


def test_a_wrong_answer_is_explained_and_asked_for_again(typing, directory):
    refused = {
        "10": "enter a number from 1 to 9, or a name",
        "Blue": "name: 'Blue' is not a cluster name",
        "mars": "region: 'mars' is not an AWS region such as us-west-2",
        "us-east-1a": "network.subnets: the example has 2 subnets; name a zone for each",
        "203.0.113.7/8": "api.allowedCidrs[0]: ",
    }
    right = ["existing-vpc", "blue", "us-east-1", "us-east-1c us-east-1d", "203.0.113.7"]
    ran = typing(*(line for answers in zip(refused, right, strict=True) for line in answers))
    assert ran.code == 0
    assert all(message in ran.err for message in refused.values())
    assert load(Path("cluster.yaml"), environ={}).cluster.network.subnets[1].zone == "us-east-1d"


@pytest.mark.parametrize("count", range(5))
def test_whoever_stops_answering_leaves_nothing(typing, tree, count):
    ran = typing(*["production", "blue", "eu-west-1", ""][:count])
    assert ran.code == 130
    assert tree() == {}


def test_nothing_is_asked_for_a_file_that_exists(typing, directory):
    (directory / "cluster.yaml").write_text("name: mine\n")
    ran = typing()
    assert ran.code == 1
    assert "already exists" in ran.err
    assert "Which example" not in ran.err


def test_who_names_an_example_is_not_asked(typing, directory):
    assert typing(arguments=("init", "--from", "small-cheap")).code == 0
    assert load(Path("cluster.yaml"), environ={}).cluster.name == "small"
