"""`cfngen permissions`."""

from __future__ import annotations

import json

import pytest

DEPLOYER = "arn:aws:iam::123456789012:role/teams/deployer"


def headings(text):
    return [line.removeprefix("==> ").partition(":")[0] for line in text.splitlines() if line.startswith("==> ")]


def printed(ran):
    return [json.loads(line) for line in ran.out.splitlines()]


def test_everybodys_policies_are_printed_with_headings(cfngen):
    ran = cfngen("permissions")
    assert ran.code == 0
    assert {name.rstrip("-123") for name in headings(ran.out)} == {
        *("operator", "execution", "bucket", "pipeline", "replace", "etcd", "pause", "master", "nodes-nodes")
    }


@pytest.mark.parametrize("name", ["etcd", "pause", "nodes-nodes", "execution-1", "execution-2", "master-2"])
def test_one_policy_is_what_iam_takes(cfngen, name):
    ran = cfngen("permissions", name, "--account", "123456789012")
    policy = json.loads(ran.out)
    assert policy["Version"] == "2012-10-17"
    assert {statement["Effect"] for statement in policy["Statement"]} == {"Allow"}
    assert "${" not in ran.out
    assert ran.err == ""


def test_a_node_group_is_known_by_its_name(cfngen):
    assert cfngen("permissions", "nodes").out == cfngen("permissions", "nodes-nodes").out


EXISTING = """\
iam:
  masters: {role: "arn:aws:iam::210987654321:role/m"}
  nodes: {role: "arn:aws:iam::210987654321:role/n"}
nodeGroups: [{name: general}, {name: batch}]
"""


def test_masters_and_the_role_that_nodes_share_go_by_plain_names(cfngen, directory):
    (directory / "own.yaml").write_text(EXISTING)
    assert (
        cfngen("permissions", "-f", "own.yaml", "masters").out == cfngen("permissions", "-f", "own.yaml", "master").out
    )
    shared = cfngen("permissions", "-f", "own.yaml", "nodes")
    assert shared.out == cfngen("permissions", "-f", "own.yaml", "nodes-batch").out
    # The account is that of the roles.
    assert ":secret:JoinSecret-*" in shared.out
    assert ":210987654321:" in shared.out
    assert shared.err == ""


def test_the_trust_policy_of_a_role(cfngen, directory):
    for options, principal in ((), "ec2.amazonaws.com"), (("--set", "region=cn-north-1"), "ec2.amazonaws.com.cn"):
        zone = ("--set", "network.subnets[0].zone=cn-north-1a") if options else ()
        ran = cfngen("permissions", "master", "--trust-policy", *options, *zone)
        [statement] = json.loads(ran.out)["Statement"]
        assert statement == {"Effect": "Allow", "Principal": {"Service": principal}, "Action": "sts:AssumeRole"}
        assert "note:" not in ran.err
    [policy] = printed(cfngen("permissions", "nodes", "--trust-policy", "--output", "json"))
    assert (policy["name"], policy["grantee"]) == ("nodes-nodes-trust", "nodes-nodes")


def with_pods(directory, issuer):
    account = "{namespace: reports, name: nightly, role: 'arn:aws:iam::210987654321:role/reports'}"
    text = f"serviceAccountIssuer: {issuer}\niam: {{serviceAccounts: [{account}]}}\n"
    (directory / "cluster.yaml").write_text(text)


def test_the_trust_policy_of_a_service_accounts_existing_role(cfngen, directory):
    with_pods(directory, "{discovery: url, url: 'https://tokens.example.com/a'}")
    [statement] = json.loads(cfngen("permissions", "pod-reports-nightly", "--trust-policy").out)["Statement"]
    # The provider is in the account of the role.
    assert statement["Principal"] == {"Federated": "arn:aws:iam::210987654321:oidc-provider/tokens.example.com/a"}
    assert statement["Condition"]["StringEquals"] == {
        "tokens.example.com/a:aud": "sts.amazonaws.com",
        "tokens.example.com/a:sub": "system:serviceaccount:reports:nightly",
    }


def test_an_issuer_that_is_known_after_deployment_only_is_filled_in_by_hand(cfngen, directory):
    with_pods(directory, "{}")
    [policy] = printed(cfngen("permissions", "pod-reports-nightly", "--trust-policy", "--output", "json"))
    assert "ISSUER stands for the stack's output ServiceAccountIssuer" in policy["purpose"]
    assert '"ISSUER:sub"' in json.dumps(policy["document"])
    ran = cfngen("permissions", "pod-reports-nightly", "--trust-policy")
    assert "note: ISSUER stands for the stack's output ServiceAccountIssuer; replace it in the policy." in ran.err


def test_roles_of_components_are_printed_by_their_service_accounts(cfngen, directory):
    with_pods(directory, "{}")
    ran = cfngen("permissions", "pod-kube-system-ebs-csi-controller-sa", "--account", "123456789012")
    assert "ec2:CreateVolume" in ran.out
    master = cfngen("permissions", "master", "--account", "123456789012")
    assert "ec2:CreateVolume" not in master.out


@pytest.mark.parametrize("name", [(), ("operator",), ("execution",)])
def test_only_roles_of_instances_and_pods_have_a_trust_policy(cfngen, name):
    ran = cfngen("permissions", *name, "--trust-policy")
    assert ran.code == 64
    assert "--trust-policy needs the NAME of a role of instances or pods: master, nodes-<group>, or pod-" in ran.err


def test_what_does_not_fit_is_cut_and_said(cfngen):
    ran = cfngen("permissions", "execution", "--account", "123456789012")
    assert headings(ran.out) == ["execution-1", "execution-2", "execution-3"]
    assert (
        "execution needs 3 policies, since IAM limits the size of a policy; attach all: execution-1, execution-2, "
        "execution-3." in " ".join(ran.err.split())
    )


def test_they_are_for_this_cluster(cfngen, directory):
    (directory / "own.yaml").write_text("name: blue\nregion: cn-north-1\nnetwork: {subnets: [{zone: cn-north-1a}]}\n")
    ran = cfngen("permissions", "-f", "own.yaml", "--stack-name", "production", "--account", "123456789012", "etcd")
    assert "arn:aws-cn:s3:::production-*backupbucket-*/blue/etcd/*" in ran.out
    assert ":cn-north-1:123456789012:" in ran.out


def test_a_stack_name_that_cloudformation_refuses_is_refused(cfngen):
    ran = cfngen("permissions", "operator", "--stack-name", "prod.example")
    assert ran.code == 1
    assert "'prod.example' is not a valid stack name" in ran.err


def test_the_service_role_may_be_another(cfngen):
    ran = cfngen("permissions", "operator", "--role-arn", DEPLOYER)
    assert f'"{DEPLOYER}"' in ran.out
    assert "cfngen-cloudformation" not in ran.out
    assert "arn:aws:cloudformation:us-west-2:123456789012:stack/kubernetes/*" in ran.out
    assert "any account" not in ran.err


def test_the_service_role_is_of_the_account(cfngen):
    ran = cfngen("permissions", "--role-arn", DEPLOYER, "--account", "210987654321")
    assert ran.code == 64
    assert "--role-arn is in account 123456789012, not in 210987654321" in ran.err


def test_without_an_account_they_are_for_any(cfngen):
    ran = cfngen("permissions", "nodes-nodes")
    assert ran.err == "note: these policies are for any account; use --account NUMBER to limit them to yours.\n"
    assert "arn:aws:ec2:us-west-2:*:instance/*" in ran.out


def test_programs_read_one_policy_a_line(cfngen):
    policies = printed(cfngen("permissions", "--output", "json"))
    assert {each["type"] for each in policies} == {"policy"}
    assert len({each["name"] for each in policies}) == len(policies)
    grantees = {"operator", "execution", "bucket", "pipeline", "replace", "etcd", "pause", "master", "nodes-nodes"}
    assert {each["grantee"] for each in policies} == grantees
    for each in policies:
        assert each["characters"] == len(json.dumps(each["document"], separators=(",", ":"))) <= 6144
    [nodes] = printed(cfngen("permissions", "nodes-nodes", "--output", "json"))
    assert nodes["document"] == json.loads(cfngen("permissions", "nodes-nodes").out)


def test_what_the_cluster_file_attaches_is_named(cfngen):
    arn = "arn:aws:iam::aws:policy/ReadOnlyAccess"
    ran = cfngen("permissions", "nodes", "--set", f"nodeGroups[0].additionalPolicies=[{arn}]")
    assert f"note: nodes-nodes also has the policies that the cluster file attaches: {arn}." in ran.err


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("excution", "did you mean 'execution'? The names are operator,"), ("x", "; the names are operator,")],
)
def test_an_unknown_name_lists_the_names(cfngen, name, suggestion):
    ran = cfngen("permissions", name)
    assert ran.code == 64
    assert f"there are no policies for {name!r} in this cluster" in ran.err
    assert suggestion in ran.err
    assert ran.err.rstrip().endswith(
        "operator, execution, bucket, pipeline, replace, etcd, pause, master, nodes-nodes, boundary."
    )


def test_an_unknown_name_is_an_error_for_programs(cfngen):
    ran = cfngen("permissions", "nobody", "--output", "json")
    [error] = printed(ran)
    assert (error["type"], error["exitCode"], ran.code) == ("error", 64, 64)


def test_without_snapshots_nobody_takes_any(cfngen):
    ran = cfngen("permissions", "etcd", "--set", "etcd.backups.enabled=false")
    assert ran.code == 64
    assert (
        "he names are operator, execution, bucket, pipeline, replace, pause, master, nodes-nodes, boundary." in ran.err
    )


@pytest.mark.parametrize("number", ["12", "12345678901a", "1234567890123"])
def test_an_account_has_twelve_digits(cfngen, number):
    ran = cfngen("permissions", "--account", number)
    assert ran.code == 64
    assert f"{number!r} is not an account number" in ran.err


def test_each_statement_is_explained_with_its_component_reason_and_calls(cfngen):
    ran = cfngen("permissions", "master", "--explain", "--account", "123456789012")
    assert (ran.code, ran.err) == (0, "")
    assert "AutoscalerOwnGroups" not in ran.out
    block = next(part for part in ran.out.split("\n\n") if part.startswith("DataVolumeAttach"))
    assert "boot program: A master attaches the data volume of its slot" in " ".join(block.split())
    assert "cfngen/boot/master/volume.py" in block
    assert "allows ec2:AttachVolume, ec2:DetachVolume" in block
    assert "arn:aws:ec2:us-west-2:123456789012:volume/*" in block
    assert '"aws:ResourceTag/KubernetesCluster": "kubernetes"' in " ".join(block.split())


def test_explanations_as_json_have_the_statements_of_the_policies(cfngen):
    explained = printed(cfngen("permissions", "execution", "--explain", "--output", "json"))
    policies = printed(cfngen("permissions", "execution", "--output", "json"))
    sids = {statement["Sid"] for policy in policies for statement in policy["document"]["Statement"]}
    assert {each["sid"] for each in explained} == sids
    assert {each["type"] for each in explained} == {"permission"}
    assert all(each["explanations"][0]["reason"] for each in explained)


def test_explanations_as_markdown_are_a_table_for_each_grantee(cfngen):
    ran = cfngen("permissions", "--explain", "--markdown")
    sections = [line.removeprefix("## ") for line in ran.out.splitlines() if line.startswith("## ")]
    assert sections == [
        "operator",
        "execution",
        "bucket",
        "pipeline",
        "replace",
        "etcd",
        "pause",
        "master",
        "nodes-nodes",
    ]
    rows = [line for line in ran.out.splitlines() if line.startswith("|")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {8}


@pytest.mark.parametrize(
    "options",
    [
        ("--markdown",),
        ("--explain", "--markdown", "-o", "json"),
        ("master", "--explain", "--trust-policy"),
        ("--diff", "a", "--explain"),
        ("--diff", "a", "--diff-deployed"),
    ],
)
def test_options_of_explanations_that_exclude_each_other_are_refused(cfngen, options):
    assert cfngen("permissions", *options).code == 64


def test_a_boundary_is_one_policy_that_names_what_it_cannot_know(cfngen):
    attached = "arn:aws:iam::123456789012:policy/team"
    ran = cfngen("permissions", "boundary", "--set", f"controlPlane.additionalPolicies=[{attached}]")
    assert {statement["Effect"] for statement in json.loads(ran.out)["Statement"]} == {"Allow"}
    assert f"add what the policies allow that the cluster file attaches to roles: {attached}." in " ".join(
        ran.err.split()
    )
    assert "boundary" not in headings(cfngen("permissions").out)


def test_a_pipelines_policy_names_the_service_role_that_is_given(cfngen):
    [policy] = printed(cfngen("permissions", "pipeline", "--role-arn", DEPLOYER, "--output", "json"))
    statements = {statement["Sid"]: statement for statement in policy["document"]["Statement"]}
    assert statements["DeployWithServiceRole"]["Condition"] == {"ArnLike": {"cloudformation:RoleArn": DEPLOYER}}
    assert statements["HandOverServiceRole"]["Resource"] == DEPLOYER


def test_two_cluster_files_are_compared_by_what_they_grant(cfngen, directory):
    (directory / "few.yaml").write_text("name: kubernetes\n")
    (directory / "many.yaml").write_text("addons: {clusterAutoscaler: {enabled: true}}\n")
    more = cfngen("permissions", "-f", "many.yaml", "--diff", "few.yaml")
    assert more.code == 5
    assert more.out.splitlines()[0] == "master"
    assert "+ AutoscalerOwnGroups: autoscaling:SetDesiredCapacity" in more.out
    assert "  - " not in more.out
    less = cfngen("permissions", "-f", "few.yaml", "--diff", "many.yaml", "--output", "json")
    assert less.code == 4
    [difference] = printed(less)
    assert (difference["type"], difference["grantee"], difference["more"]) == ("permissionDifference", "master", [])
    assert {change["sid"] for change in difference["less"]} == {"AutoscalerRead", "AutoscalerOwnGroups"}
    same = cfngen("permissions", "etcd", "-f", "many.yaml", "--diff", "few.yaml")
    assert (same.code, same.out) == (0, "Nothing is granted more or less.\n")


def test_the_roles_of_the_templates_are_compared_with_those_of_the_stacks(run):
    assert run("permissions", "--diff-deployed").out == "Nothing is granted more or less.\n"
    nodes = "nodeGroups[0].policyStatements=[{actions: ['s3:GetObject'], resources: ['*']}]"
    changed = run("permissions", "--diff-deployed", "--set", "addons.clusterAutoscaler.enabled=true", "--set", nodes)
    assert changed.code == 5
    assert "+ AutoscalerOwnGroups: autoscaling:SetDesiredCapacity" in changed.out
    assert "+ ClusterFile1: s3:GetObject on *" in changed.out
    alone = run("permissions", "MasterRole", "--diff-deployed", "--set", nodes)
    assert (alone.code, alone.out) == (0, "Nothing is granted more or less.\n")
    unknown = run("permissions", "master", "--diff-deployed")
    assert unknown.code == 64
    assert "the roles are MasterRole, NodeRole" in " ".join(unknown.err.split())


def test_no_stack_is_no_difference_but_a_failure(run):
    assert run("permissions", "--diff-deployed", stack="other").code == 1
