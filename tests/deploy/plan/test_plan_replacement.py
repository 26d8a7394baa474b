"""What of a change set's announcements a plan believes: noise between nested stacks, and what might be."""

from __future__ import annotations

import pytest
from recorded import (
    CHANGE_SET,
    UNKNOWN_VALUE,
    Recorded,
    change,
    description,
    detail,
    documents,
    nested,
    nested_arn,
    request,
)

from cfngen.deploy.plan.change_sets import make_plan
from cfngen.deploy.plan.plan import Change, Plan, Replacement
from cfngen.templates.document import Document

GROUP, RULE = "AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress"
ASG, TEMPLATE = "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::LaunchTemplate"
VPC, SUBNET = "AWS::EC2::VPC", "AWS::EC2::Subnet"


def planned(root: tuple, **children: tuple) -> Plan:
    """The plan of a change set for the default cluster, of nested stacks by their logical ids."""
    api = Recorded()
    api.change_sets[CHANGE_SET] = description(CHANGE_SET, *root)
    for logical_id, changes in children.items():
        arn = nested_arn(logical_id)
        names = next(
            (each.body.get("Parameters", {}) for each in documents() if f"{logical_id}" == _stack_of(each)), {}
        )
        parameters = [{"ParameterKey": name, "ParameterValue": "x"} for name in names]
        more = {} if changes else {"Status": "FAILED", "StatusReason": "No updates are to be performed."}
        api.change_sets[arn] = description(arn, *changes, Parameters=parameters, **more)
    api.answers["GetTemplate"] = lambda _: {"TemplateBody": "{}"}
    return make_plan(api.account, request(), report=lambda _: None)


def _stack_of(document: Document) -> str:
    names = {"vpc": "VpcStack", "security-groups": "SecurityGroupsStack", "iam": "IamStack", "master": "MasterStack"}
    return names.get(document.name, "NodeGroupNodesStack" if document.name.startswith("nodes-") else "")


def by_id(plan: Plan) -> dict[str, Change]:
    return {each.logical_id: each for each in plan.changes}


def handed(name: str, supplier: str) -> dict:
    return detail(f"Parameters/{name}", "old", UNKNOWN_VALUE, cause=f"{supplier}.Outputs.{name}")


SECURITY_GROUPS = (
    change(
        "MasterSecurityGroup",
        GROUP,
        detail("VpcId", "vpc-1", UNKNOWN_VALUE, recreation="Always", cause="VpcId"),
        replacement="Conditional",
        policy="ReplaceAndDelete",
    ),
    change(
        "MasterApiFromNodes",
        RULE,
        detail("GroupId", "sg-1", UNKNOWN_VALUE, recreation="Always", evaluation="Dynamic"),
        detail("GroupId", "sg-1", UNKNOWN_VALUE, recreation="Always", cause="MasterSecurityGroup.GroupId"),
        replacement="Conditional",
    ),
)


class TestNoise:
    def test_an_output_of_a_stack_in_which_nothing_happens_stays(self):
        plan = planned(
            (nested("VpcStack"), nested("SecurityGroupsStack", handed("VpcId", "VpcStack"))),
            VpcStack=(),
            SecurityGroupsStack=SECURITY_GROUPS,
        )
        assert plan.changes == ()

    def test_an_output_of_a_resource_that_only_gets_tags_stays(self):
        tagged = change("Vpc", VPC, detail("Tags/0/Value", "a", "b"))
        plan = planned(
            (nested("VpcStack"), nested("SecurityGroupsStack", handed("VpcId", "VpcStack"))),
            VpcStack=(tagged,),
            SecurityGroupsStack=SECURITY_GROUPS,
        )
        assert set(by_id(plan)) == {"Vpc"}

    def test_an_output_stays_though_another_resource_of_its_stack_is_replaced(self):
        subnet = change(
            "SubnetA",
            SUBNET,
            detail("CidrBlock", "172.20.0.0/24", "172.20.1.0/24", recreation="Always"),
            replacement="True",
        )
        plan = planned(
            (nested("VpcStack"), nested("SecurityGroupsStack", handed("VpcId", "VpcStack"))),
            VpcStack=(subnet,),
            SecurityGroupsStack=SECURITY_GROUPS,
        )
        assert set(by_id(plan)) == {"SubnetA"}

    def test_what_is_the_same_before_and_after_is_no_change(self):
        same = change("SubnetA", SUBNET, detail("CidrBlock", "172.20.0.0/24", "172.20.0.0/24", recreation="Always"))
        assert planned((nested("VpcStack"),), VpcStack=(same,)).changes == ()

    def test_a_template_that_moved_is_no_change_of_the_nested_stack_itself(self):
        url = detail("TemplateURL", "https://bucket/a/vpc.json", "https://bucket/b/vpc.json")
        plan = planned((nested("VpcStack", url),), VpcStack=())
        assert plan.changes == ()
        assert plan.templates_only

    def test_tags_of_a_nested_stack_are_its_own(self):
        plan = planned((nested("VpcStack", detail("Tags/0/Value", "a", "b")),), VpcStack=())
        assert [(each.logical_id, each.action) for each in plan.changes] == [("VpcStack", "update")]


class TestReplacement:
    def test_is_certain_where_a_fixed_value_is_known_and_differs(self):
        vpc = change(
            "Vpc", VPC, detail("CidrBlock", "172.20.0.0/16", "10.0.0.0/16", recreation="Always"), replacement="True"
        )
        plan = planned((nested("VpcStack"),), VpcStack=(vpc,))
        assert by_id(plan)["Vpc"].replacement is Replacement.WILL
        assert (plan.counts.replace, plan.counts.might_replace) == (1, 0)

    def test_is_certain_where_it_follows_from_a_certain_one_in_another_stack(self):
        vpc = change(
            "Vpc", VPC, detail("CidrBlock", "172.20.0.0/16", "10.0.0.0/16", recreation="Always"), replacement="True"
        )
        plan = planned(
            (nested("VpcStack"), nested("SecurityGroupsStack", handed("VpcId", "VpcStack"))),
            VpcStack=(vpc,),
            SecurityGroupsStack=SECURITY_GROUPS,
        )
        found = {name: each.replacement for name, each in by_id(plan).items()}
        assert found == dict.fromkeys(("Vpc", "MasterSecurityGroup", "MasterApiFromNodes"), Replacement.WILL)
        assert by_id(plan)["MasterSecurityGroup"].policy == "delete"

    def test_might_be_where_cloudformation_says_true_of_an_unknown_value_without_a_cause(self):
        # The report of aws-cloudformation/cloudformation-coverage-roadmap#2113.
        gateway = change(
            "NatGateway",
            "AWS::EC2::NatGateway",
            detail("SubnetId", "subnet-1", UNKNOWN_VALUE, recreation="Always"),
            replacement="True",
            policy="ReplaceAndDelete",
        )
        plan = planned((gateway,))
        assert by_id(plan)["NatGateway"].replacement is Replacement.MIGHT
        [prop] = by_id(plan)["NatGateway"].properties
        assert (prop.before, prop.after, prop.known, prop.certain) == ("subnet-1", None, False, False)

    def test_might_be_where_the_property_says_conditionally(self):
        database = change(
            "Db",
            "AWS::RDS::DBInstance",
            detail("Engine", "a", "b", recreation="Conditionally"),
            replacement="Conditional",
        )
        assert by_id(planned((database,)))["Db"].replacement is Replacement.MIGHT

    def test_of_a_group_that_rolls_its_instances_never_is(self):
        launch = change("NodeGroupNodesLaunchTemplate", TEMPLATE, detail("LaunchTemplateData/InstanceType", "a", "b"))
        version = detail(
            "LaunchTemplate/Version",
            "1",
            UNKNOWN_VALUE,
            recreation="Conditionally",
            cause="NodeGroupNodesLaunchTemplate.LatestVersionNumber",
        )
        group = change("NodeGroupNodesAutoScalingGroup", ASG, version, replacement="Conditional")
        found = by_id(planned((nested("NodeGroupNodesStack"),), NodeGroupNodesStack=(launch, group)))
        assert found["NodeGroupNodesAutoScalingGroup"].replacement is Replacement.NO
        assert "one at a time" in found["NodeGroupNodesAutoScalingGroup"].impact.text

    def test_a_version_of_a_launch_template_that_only_gets_tags_stays(self):
        launch = change("NodeGroupNodesLaunchTemplate", TEMPLATE, detail("Tags/0/Value", "a", "b"))
        version = detail(
            "LaunchTemplate/Version", "1", UNKNOWN_VALUE, cause="NodeGroupNodesLaunchTemplate.LatestVersionNumber"
        )
        group = change("NodeGroupNodesAutoScalingGroup", ASG, version)
        found = by_id(planned((nested("NodeGroupNodesStack"),), NodeGroupNodesStack=(launch, group)))
        assert set(found) == {"NodeGroupNodesLaunchTemplate"}


class TestProperties:
    def test_of_two_entries_about_one_property_the_one_that_knows_the_cause_counts(self):
        volume = change(
            "MasterAVolume",
            "AWS::EC2::Volume",
            detail("Size", "20", "40", evaluation="Dynamic"),
            detail("Size", "20", "40", cause="MasterVolumeSize"),
        )
        [prop] = by_id(planned((nested("MasterStack"),), MasterStack=(volume,)))["MasterAVolume"].properties
        assert (prop.path, prop.before, prop.after, prop.cause) == (
            "/Properties/Size",
            "20",
            "40",
            "parameter MasterVolumeSize",
        )

    @pytest.mark.parametrize("masked", ["****", "********"])
    def test_secret_values_are_not_shown(self, masked):
        stack = change("Thing", "AWS::X::Y", detail("Password", masked, masked + "*", cause="Password"))
        [prop] = by_id(planned((stack,)))["Thing"].properties
        assert (prop.before, prop.after, prop.sensitive) == (None, None, True)
