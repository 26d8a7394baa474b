"""CloudFormation itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from refusal import Creation, Refusal, ServiceCall, TestedElsewhere, Update
from refusals_identity import LISTING, document, policies, role
from small_stacks import BAD, GATEWAY, REGION, nested, tagged, text, vpc

from cfngen.sandbox.cloudformation import ApiError, CloudFormation, client, region

Tried = Creation | Update | ServiceCall | TestedElsewhere
Evidence = Any
DOCS = "https://docs.aws.amazon.com/AWSCloudFormation/latest"
GUIDE, REFERENCE, API = f"{DOCS}/UserGuide", f"{DOCS}/TemplateReference", f"{DOCS}/APIReference"
TOLD = "condition documented"
SUB = f"template reference: [Fn::Sub]({REFERENCE}/intrinsic-function-reference-sub.html)"
CONDITIONS = f"guide: [Conditions]({GUIDE}/conditions-section-structure.html)"
PARAMETERS = f"guide: [Parameters]({GUIDE}/parameters-section-structure.html)"
QUOTAS = f"guide: [quotas]({GUIDE}/cloudformation-limits.html)"
CREATE = f"[CreateStack]({API}/API_CreateStack.html)"
LINT = "https://github.com/aws-cloudformation/cfn-lint"


def template(**sections: Any) -> ServiceCall:
    """A template that is refused as a whole."""

    def attempt(cloud: CloudFormation) -> None:
        cloud.create_stack("s", body=json.dumps({"Resources": {"G": GATEWAY}, **sections}))

    return ServiceCall(attempt)


def output(value: Any, **sections: Any) -> ServiceCall:
    return template(Outputs={"It": {"Value": value}}, **sections)


def calling(attempt: Callable[[CloudFormation], object]) -> ServiceCall:
    return ServiceCall(attempt)


def parameter(value: str | None, **definition: Any) -> ServiceCall:
    def attempt(cloud: CloudFormation) -> None:
        body = text({"G": GATEWAY}, Parameters={"P": {"Type": "String", **definition}})
        cloud.create_stack("s", body=body, parameters={} if value is None else {"P": value})

    return ServiceCall(attempt)


def creating(name: str = "s", **arguments: Any) -> ServiceCall:
    return ServiceCall(lambda cloud: cloud.create_stack(name, body=text({"G": GATEWAY}), **arguments))


def twice(cloud: CloudFormation) -> None:
    for _ in range(2):
        cloud.create_stack("s", body=text({"G": GATEWAY}))


def exporting(name: str) -> str:
    return text({"G": GATEWAY}, Outputs={"It": {"Value": "1", "Export": {"Name": name}}})


def _exported_twice(cloud: CloudFormation) -> None:
    cloud.wait(cloud.create_stack("one", body=exporting("shared")))
    stack = cloud.wait(cloud.create_stack("two", body=exporting("shared")))
    assert stack.status == "ROLLBACK_COMPLETE"
    raise_reasons(cloud, "two")


def _export_in_use(cloud: CloudFormation) -> None:
    cloud.wait(cloud.create_stack("one", body=exporting("shared")))
    cloud.wait(cloud.create_stack("two", body=text({"G": tagged(word="x")}, Outputs={
        "It": {"Value": {"Fn::ImportValue": "shared"}}})))  # fmt: skip
    cloud.wait(cloud.update_stack("one", body=text({"G": GATEWAY})))
    raise_reasons(cloud, "one")


def _deleted_with_an_export_in_use(cloud: CloudFormation) -> None:
    first = cloud.wait(cloud.create_stack("one", body=exporting("shared")))
    cloud.wait(cloud.create_stack("two", body=text({"G": tagged(word="x")}, Outputs={
        "It": {"Value": {"Fn::ImportValue": "shared"}}})))  # fmt: skip
    cloud.wait(cloud.delete_stack("one"))
    assert [event.status for event in first.events[-2:]] == ["DELETE_IN_PROGRESS", "CREATE_COMPLETE"]
    assert first.resources["G"].status == "CREATE_COMPLETE"
    raise ApiError(first.reason)


def _signalled_twice(cloud: CloudFormation) -> None:
    cloud.create_stack("s", body=text(signal(Count=2).resources()))
    for _ in range(2):
        cloud.signal_resource("s", "It", "i-1", "SUCCESS")


def _no_export(cloud: CloudFormation) -> None:
    body = text({"G": GATEWAY}, Outputs={"It": {"Value": {"Fn::ImportValue": "gone"}}})
    cloud.wait(cloud.create_stack("s", body=body))
    raise_reasons(cloud, "s")


def _no_other_stack(cloud: CloudFormation) -> None:
    output = {"Fn::GetStackOutput": {"StackName": "gone", "OutputName": "It"}}
    cloud.wait(cloud.create_stack("s", body=text({"G": GATEWAY}, Outputs={"It": {"Value": output}})))
    raise_reasons(cloud, "s")


def _no_output(cloud: CloudFormation) -> None:
    cloud.wait(cloud.create_stack("other", body=text({"G": GATEWAY})))
    output = {"Fn::GetStackOutput": {"StackName": "other", "OutputName": "gone"}}
    cloud.wait(cloud.create_stack("s", body=text({"G": GATEWAY}, Outputs={"It": {"Value": output}})))
    raise_reasons(cloud, "s")


def _deletion(resource: Mapping[str, Any], interfere: Callable[[str], object]) -> ServiceCall:
    """A deletion in whose way something stands that someone else has made."""

    def attempt(cloud: CloudFormation) -> None:
        body = text({"It": dict(resource)})
        stack = cloud.wait(cloud.create_stack("s", body=body, capabilities=["CAPABILITY_IAM"]))
        interfere(stack.resources["It"].physical_id)
        assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_FAILED"
        raise_reasons(cloud, "s")

    return ServiceCall(attempt)


def _attach(name: str) -> None:
    client("iam", REGION).attach_role_policy(RoleName=name, PolicyArn=policies(1)[0])


def _fill(name: str) -> None:
    client("s3", REGION).put_object(Bucket=name, Key="a", Body=b"")


def raise_reasons(cloud: CloudFormation, name: str) -> None:
    """What a stack says of itself, where no single resource fails."""
    raise ApiError(" ".join(event.reason for event in cloud.stack(name).events))


def _listed(cloud: CloudFormation) -> None:
    body = text({"G": GATEWAY}, Outputs={"It": {"Value": {"Fn::Split": [",", "a,b"]}}})
    cloud.wait(cloud.create_stack("s", body=body))
    raise_reasons(cloud, "s")


def _too_many_stacks(cloud: CloudFormation) -> None:
    stack = cloud.create_stack("s", body=text({"G": GATEWAY}))
    for _ in range(region.STACK_QUOTA - 1):
        cloud.add_stack(stack)
    cloud.create_stack("t", body=text({"G": GATEWAY}))


def _no_change(cloud: CloudFormation) -> None:
    cloud.wait(cloud.create_stack("s", body=text({"G": GATEWAY})))
    cloud.update_stack("s", body=text({"G": GATEWAY}))


def _after_rollback(cloud: CloudFormation) -> None:
    cloud.wait(cloud.create_stack("s", body=text({"B": BAD})))
    cloud.update_stack("s", body=text({"G": GATEWAY}))


def _change_set(name: str = "c", **arguments: Any) -> ServiceCall:
    def attempt(cloud: CloudFormation) -> None:
        cloud.wait(cloud.create_stack("s", body=text({"G": GATEWAY})))
        cloud.create_change_set("s", name, body=text({"G": tagged(a="b")}), **arguments)

    return ServiceCall(attempt)


def _policy(body: str) -> ServiceCall:
    return ServiceCall(lambda cloud: cloud.create_stack("s", body=text({"G": GATEWAY}), policy=body))


def signal(**policy: Any) -> Creation:
    condition = {
        "Type": "AWS::CloudFormation::WaitCondition",
        "CreationPolicy": {"ResourceSignal": {"Count": 1, **policy}},
    }
    return Creation(lambda: {"It": condition}, "It")


def _policy_about_nothing(cloud: CloudFormation) -> None:
    cloud.wait(cloud.create_stack("s", body=text({"G": GATEWAY})))
    statement = {"Effect": "Deny", "Action": "Update:*", "Principal": "*", "Resource": "LogicalResourceId/Gone"}
    cloud.set_stack_policy("s", json.dumps({"Statement": [statement]}))


def child(body: Mapping[str, Any], **properties: Any) -> Creation:
    return Creation(lambda: {"It": nested("child", json.dumps(body), **properties)}, "It")


def row(resource: str, condition: str, words: str, source: str, evidence: Evidence, tried: Tried) -> Refusal:
    return Refusal(resource, condition, words, source, evidence, tried)


def functions() -> list[Refusal]:
    undefined = "references undefined resource Gone"
    two = "requires two non-empty parameters, the resource name and the resource attribute"
    join = "every Fn::Join object requires two parameters"
    return [
        row("Fn::GetAtt", "attribute that the type does not have",
            "resource G does not support attribute type Arn in Fn::GetAtt",
            f"template reference: [Fn::GetAtt]({REFERENCE}/intrinsic-function-reference-getatt.html)", TOLD,
            output({"Fn::GetAtt": ["G", "Arn"]})),
        row("Fn::GetAtt", "resource that does not exist", undefined,
            f"template reference: [Fn::GetAtt]({REFERENCE}/intrinsic-function-reference-getatt.html)", TOLD,
            output({"Fn::GetAtt": ["Gone", "Id"]})),
        row("Fn::GetAtt", "a parameter", "references undefined resource P",
            f"template reference: [Fn::GetAtt]({REFERENCE}/intrinsic-function-reference-getatt.html)", TOLD,
            output({"Fn::GetAtt": "P.Value"}, Parameters={"P": {"Type": "String", "Default": ""}})),
        row("Fn::GetAtt", "no attribute", two,
            "[serverless-vpc-plugin#705](https://github.com/smoketurner/serverless-vpc-plugin/pull/705)", "seen",
            output({"Fn::GetAtt": ["G"]})),
        row("Ref", "name that does not exist", "Unresolved resource dependencies [Gone] in the Outputs block",
            "[serverless#4745](https://github.com/serverless/serverless/issues/4745)", "seen", output({"Ref": "Gone"})),
        row("Ref", "pseudo parameter that does not exist", "Unresolved resource dependencies [AWS::Zone]",
            f"template reference: [pseudo parameters]({REFERENCE}/pseudo-parameter-reference.html)", TOLD,
            output({"Ref": "AWS::Zone"})),
        row("Fn::Sub", "name that does not exist", "Unresolved resource dependencies [Gone]", SUB, TOLD,
            output({"Fn::Sub": "${Gone}"})),
        row("Fn::Sub", "attribute that the type does not have", "does not support attribute type Arn in Fn::GetAtt",
            SUB, TOLD, output({"Fn::Sub": "${G.Arn}"})),
        row("Fn::Sub", "name with a hyphen", "must contain only alphanumeric characters, underscores, periods", SUB,
            TOLD, output({"Fn::Sub": "${My-Gateway}"})),
        row("Fn::Sub", "no text", "don't specify expected arguments", SUB, TOLD, output({"Fn::Sub": [{"Ref": "G"}]})),
        row("Fn::Join", "no list", join,
            "[cloudformation-ruby-dsl#131](https://github.com/bazaarvoice/cloudformation-ruby-dsl/issues/131)", "seen",
            output({"Fn::Join": ["-", "a"]})),
        row("Fn::Select", "index beyond the list", "Fn::Select cannot select nonexistent value at index 2",
            "[quickstart-datastax#14](https://github.com/aws-quickstart/quickstart-datastax/issues/14)", "seen",
            output({"Fn::Select": [2, ["a", "b"]]})),
        row("Fn::Select", "index that is no number", "valid index value as its first element",
            f"template reference: [Fn::Select]({REFERENCE}/intrinsic-function-reference-select.html)", TOLD,
            output({"Fn::Select": ["first", ["a", "b"]]})),
        row("Fn::Split", "no delimiter", "every Fn::Split object requires two parameters",
            f"template reference: [Fn::Split]({REFERENCE}/intrinsic-function-reference-split.html)", TOLD,
            output({"Fn::Split": ["a,b"]})),
        row("Fn::Cidr", "more blocks than there are", "has fewer than 6 blocks of that size",
            f"template reference: [Fn::Cidr]({REFERENCE}/intrinsic-function-reference-cidr.html)", TOLD,
            Creation(lambda: {"It": vpc({"Fn::Select": [0, {"Fn::Cidr": ["10.0.0.0/24", 6, 8]}]})}, "It")),
        row("Fn::Cidr", "blocks larger than the range", "Template error: invalid CIDR block size 23",
            "[eksctl-io/eksctl#4904](https://github.com/eksctl-io/eksctl/pull/4904)", "seen",
            Creation(lambda: {"It": vpc({"Fn::Select": [0, {"Fn::Cidr": ["10.0.0.0/16", 8, 23]}]})}, "It")),
        row("Fn::Base64", "a list", "every Fn::Base64 object must have a String-typed value",
            f"template reference: [Fn::Base64]({REFERENCE}/intrinsic-function-reference-base64.html)", TOLD,
            output({"Fn::Base64": ["a"]})),
        row("Fn::ImportValue", "a name that depends on a resource", "must not depend on any resources",
            f"template reference: [Fn::ImportValue]({REFERENCE}/intrinsic-function-reference-importvalue.html)", TOLD,
            output({"Fn::ImportValue": {"Fn::Sub": "${G}-id"}})),
        row("Outputs", "an export whose name depends on a resource", "cannot depend on the resources ['G']",
            f"guide: [Outputs]({GUIDE}/outputs-section-structure.html)", TOLD,
            template(Outputs={"It": {"Value": "x", "Export": {"Name": {"Fn::Sub": "${G}-id"}}}})),
        row("Fn::Cidr", "more than 256 blocks", "is not between 1 and 256",
            f"template reference: [Fn::Cidr]({REFERENCE}/intrinsic-function-reference-cidr.html)", TOLD,
            output({"Fn::Select": [0, {"Fn::Cidr": ["10.0.0.0/16", 300, 8]}]})),
        row("Fn::FindInMap", "mapping that does not exist",
            "Mapping named 'M' is not present in the 'Mappings' section of template",
            f"template reference: [Fn::FindInMap]({REFERENCE}/intrinsic-function-reference-findinmap.html)", TOLD,
            output({"Fn::FindInMap": ["M", "a", "b"]})),
        row("Fn::FindInMap", "key that does not exist", "Unable to get mapping for M::a::c",
            f"template reference: [Fn::FindInMap]({REFERENCE}/intrinsic-function-reference-findinmap.html)", TOLD,
            output({"Fn::FindInMap": ["M", "a", "c"]}, Mappings={"M": {"a": {"b": "1"}}})),
        row("Fn::FindInMap", "two parameters", "every Fn::FindInMap object requires three parameters",
            "[cloudformation-coverage-roadmap#2034]"
            "(https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/2034)", "seen",
            output({"Fn::FindInMap": ["M", "a"]}, Mappings={"M": {"a": {"b": "1"}}})),
        row("Fn::If", "condition that does not exist", "Unresolved condition dependency Gone in the Outputs block",
            CONDITIONS, TOLD, output({"Fn::If": ["Gone", "a", "b"]})),
        row("Fn::If", "two parameters", "Fn::If requires a list argument with three elements", CONDITIONS, TOLD,
            output({"Fn::If": ["C", "a"]}, Conditions={"C": {"Fn::Equals": ["a", "b"]}})),
        row("Fn::Equals", "outside of conditions", "is only supported in conditions and rules", CONDITIONS, TOLD,
            output({"Fn::Equals": ["a", "b"]})),
        row("Fn::Lower", "a function that does not exist", "Encountered unsupported function: Fn::Lower",
            f"template reference: [intrinsic functions]({REFERENCE}/intrinsic-function-reference.html)", TOLD,
            output({"Fn::Lower": "A"})),
    ]  # fmt: skip


def sections() -> list[Refusal]:
    twice_named = {"A": {"Value": "1", "Export": {"Name": "x"}}, "B": {"Value": "2", "Export": {"Name": "x"}}}
    return [
        row("Template", "another version", "unsupported value for AWSTemplateFormatVersion",
            f"guide: [format version]({GUIDE}/format-version-structure.html)", TOLD,
            template(AWSTemplateFormatVersion="2026-01-01")),
        row("Template", "a section that does not exist", "Invalid template property or properties",
            f"guide: [template anatomy]({GUIDE}/template-anatomy.html)", TOLD, template(Resource={})),
        row("Template", "no resources", "At least one Resources member must be defined",
            f"guide: [Resources]({GUIDE}/resources-section-structure.html)", TOLD, template(Resources={})),
        row("Template", "a description that is no text", "Every Description member must be a string",
            "[cdklabs/decdk#369](https://github.com/cdklabs/decdk/issues/369)", "seen",
            template(Description={"Ref": "AWS::Region"})),
        row("Outputs", "a description that is no text", "Every Description member must be a string",
            "[cdklabs/decdk#369](https://github.com/cdklabs/decdk/issues/369)", "seen",
            template(Outputs={"O": {"Value": "x", "Description": {"Ref": "AWS::Region"}}})),
        row("Resources", "no type", "Every Resources object must contain a Type member",
            f"guide: [Resources]({GUIDE}/resources-section-structure.html)", TOLD, template(Resources={"G": {}})),
        row("Resources", "type that is no text", "Every Type member must be a string",
            f"[cfn-lint#1630]({LINT}/issues/1630)", "seen", template(Resources={"G": {"Type": {"Ref": "P"}}})),
        row("Resources", "type that does not exist", "Unrecognized resource types: [AWS::EC2::Gateway]",
            f"guide: [Resources]({GUIDE}/resources-section-structure.html)", TOLD,
            template(Resources={"G": {"Type": "AWS::EC2::Gateway"}})),
        row("Resources", "id with a hyphen", "Resource name my-gateway is non alphanumeric",
            f"guide: [Resources]({GUIDE}/resources-section-structure.html)", TOLD,
            template(Resources={"my-gateway": GATEWAY})),
        row("Resources", "an attribute that does not exist", "Invalid template resource property DependOn",
            f"guide: [resource attributes]({REFERENCE}/aws-product-attribute-reference.html)", TOLD,
            template(Resources={"G": {**GATEWAY, "DependOn": []}})),
        row("Resources", "more than 500", "is greater than maximum allowed, 500", QUOTAS, TOLD,
            template(Resources={f"G{number}": GATEWAY for number in range(501)})),
        row("Resources", "condition that does not exist", "Unresolved condition dependency Gone in the Resources block",
            CONDITIONS, TOLD, template(Resources={"G": {**GATEWAY, "Condition": "Gone"}})),
        row("DependsOn", "resource that does not exist", "Unresolved resource dependencies [Gone]",
            f"template reference: [DependsOn]({REFERENCE}/aws-attribute-dependson.html)", TOLD,
            template(Resources={"G": {**GATEWAY, "DependsOn": "Gone"}})),
        row("DependsOn", "a function", "DependsOn must be a string or list of strings",
            f"template reference: [DependsOn]({REFERENCE}/aws-attribute-dependson.html)", TOLD,
            template(Resources={"G": {**GATEWAY, "DependsOn": {"Ref": "G"}}})),
        row("DependsOn", "itself", "Circular dependency between resources",
            f"template reference: [DependsOn]({REFERENCE}/aws-attribute-dependson.html)", TOLD,
            template(Resources={"G": {**GATEWAY, "DependsOn": "G"}})),
        row("DeletionPolicy", "one that does not exist", "Unrecognized DeletionPolicy Keep for resource G",
            f"template reference: [DeletionPolicy]({REFERENCE}/aws-attribute-deletionpolicy.html)", TOLD,
            template(Resources={"G": {**GATEWAY, "DeletionPolicy": "Keep"}})),
        row("DeletionPolicy", "a function without the language extensions",
            "Every DeletionPolicy member must be a string",
            f"template reference: [DeletionPolicy]({REFERENCE}/aws-attribute-deletionpolicy.html)", TOLD,
            template(Resources={"G": {**GATEWAY, "DeletionPolicy": {"Ref": "P"}}})),
        row("DeletionPolicy", "a snapshot of what has none", "does not support snapshots",
            f"template reference: [DeletionPolicy]({REFERENCE}/aws-attribute-deletionpolicy.html)", TOLD,
            template(Resources={"G": {**GATEWAY, "DeletionPolicy": "Snapshot"}})),
        row("UpdateReplacePolicy", "RetainExceptOnCreate", "Unrecognized UpdateReplacePolicy",
            f"template reference: [UpdateReplacePolicy]({REFERENCE}/aws-attribute-updatereplacepolicy.html)", TOLD,
            template(Resources={"G": {**GATEWAY, "UpdateReplacePolicy": "RetainExceptOnCreate"}})),
        row("Outputs", "no value", "Every Outputs member must contain a Value object",
            f"guide: [Outputs]({GUIDE}/outputs-section-structure.html)", TOLD, template(Outputs={"It": {}})),
        row("Outputs", "a list", "must evaluate to a String",
            f"guide: [Outputs]({GUIDE}/outputs-section-structure.html)", TOLD, calling(_listed)),
        row("Resources", "no value for a property", "'null' values are not allowed in templates",
            f"guide: [formats]({GUIDE}/template-formats.html)", TOLD,
            template(Resources={"G": {**GATEWAY, "Properties": {"Tags": None}}})),
        row("Outputs", "more than 200", "is greater than maximum allowed, 200", QUOTAS, TOLD,
            template(Outputs={f"O{number}": {"Value": "1"} for number in range(201)})),
        row("Outputs", "one export twice", "Export names must be unique",
            f"guide: [Outputs]({GUIDE}/outputs-section-structure.html)", TOLD, template(Outputs=twice_named)),
        row("Mappings", "more than 200 attributes", "Number of mapping attributes, 201", QUOTAS, TOLD,
            template(Mappings={"M": {f"k{number}": {"a": "b"} for number in range(201)}})),
        row("Mappings", "a function", "attribute must be a String or a List",
            "[digitalmarketplace-api#187](https://github.com/Crown-Commercial-Service/digitalmarketplace-api/pull/187)",
            "seen", template(Mappings={"M": {"a": {"b": {"Ref": "AWS::Region"}}}})),
        row("Conditions", "a resource in one", "Cannot reference resources in the Conditions block of the template",
            f"[cfn-lint#99]({LINT}/issues/99)", "seen",
            template(Conditions={"C": {"Fn::Equals": [{"Ref": "G"}, "a"]}})),
        row("Conditions", "two that need each other", "circular condition dependency", CONDITIONS, TOLD,
            template(Conditions={"A": {"Fn::Not": [{"Condition": "B"}]}, "B": {"Fn::Not": [{"Condition": "A"}]}})),
        row("Conditions", "one that does not exist", "Unresolved condition dependency Gone in the Conditions block",
            CONDITIONS, TOLD, template(Conditions={"A": {"Fn::Not": [{"Condition": "Gone"}]}})),
        row("Conditions", "Fn::And of one", "requires a list of at least 2 and at most 10 boolean parameters",
            CONDITIONS, TOLD, template(Conditions={"A": {"Fn::And": [{"Fn::Equals": ["a", "a"]}]}})),
        row("Conditions", "Fn::Or of one", "Fn::Or object requires a list of at least 2 and at most 10", CONDITIONS,
            TOLD, template(Conditions={"A": {"Fn::Or": [{"Fn::Equals": ["a", "a"]}]}})),
        row("Conditions", "Fn::Not of two", "every Fn::Not object requires one boolean parameter", CONDITIONS, TOLD,
            template(Conditions={"A": {"Fn::Not": [{"Fn::Equals": ["a", "a"]}, {"Fn::Equals": ["a", "a"]}]}})),
        row("Conditions", "Fn::Equals of one", "every Fn::Equals object requires a list of 2 string parameters",
            CONDITIONS, TOLD, template(Conditions={"A": {"Fn::Equals": ["a"]}})),
        row("Conditions", "a text", "can only be boolean operations", CONDITIONS, TOLD,
            template(Conditions={"A": "a"})),
    ]  # fmt: skip


def parameters() -> list[Refusal]:
    return [
        row("Parameters", "no type", "Every Parameters object must contain a Type member", PARAMETERS, TOLD,
            template(Parameters={"P": {"Default": "a"}})),
        row("Parameters", "type that does not exist", "Unrecognized parameter type: Integer", PARAMETERS, TOLD,
            parameter("1", Type="Integer")),
        row("Parameters", "a function as default", "Every Default member must be a string",
            f"[cfn-lint#624]({LINT}/pull/624)", "seen", parameter("1", Default={"Ref": "AWS::Region"})),
        row("Parameters", "more than 200", "is greater than maximum allowed, 200", QUOTAS, TOLD,
            template(Parameters={f"P{number}": {"Type": "String", "Default": ""} for number in range(201)})),
        row("Parameters", "no value", "Parameters: [P] must have values", PARAMETERS, TOLD, parameter(None)),
        row("Parameters", "value that is not allowed", "must be one of AllowedValues", PARAMETERS, TOLD,
            parameter("c", AllowedValues=["a", "b"])),
        row("Parameters", "default that is not allowed", "must be one of AllowedValues", PARAMETERS, TOLD,
            parameter(None, AllowedValues=["a", "b"], Default="c")),
        row("Parameters", "value that does not match", "must match pattern [a-z]+", PARAMETERS, TOLD,
            parameter("1", AllowedPattern="[a-z]+")),
        row("Parameters", "number that is none", "must be a number", PARAMETERS, TOLD, parameter("x", Type="Number")),
        row("Parameters", "number that is too large", "must be a number not greater than 3", PARAMETERS, TOLD,
            parameter("4", Type="Number", MaxValue=3)),
        row("Parameters", "text that is too short", "must contain at least 2 characters", PARAMETERS, TOLD,
            parameter("a", MinLength=2)),
        row("Parameters", "value of more than 4,096 bytes", "must contain at most 4096 characters", QUOTAS, TOLD,
            parameter("a" * 4_097)),
        row("Parameters", "one that the template does not have", "Parameters: [Q] do not exist in the template",
            PARAMETERS, TOLD,
            ServiceCall(lambda cloud: cloud.create_stack("s", body=text({"G": GATEWAY}), parameters={"Q": ""}))),
    ]  # fmt: skip


def calls() -> list[Refusal]:
    many = {f"k{number}": "v" for number in range(51)}
    policy_api = f"[SetStackPolicy]({API}/API_SetStackPolicy.html)"
    change_api = f"[CreateChangeSet]({API}/API_CreateChangeSet.html)"
    continuing = f"[ContinueUpdateRollback]({API}/API_ContinueUpdateRollback.html)"
    managed = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": document(LISTING)}}
    return [
        row("CreateStack", "name that begins with a digit", "Value '1s' at 'stackName' failed to satisfy constraint",
            f"{CREATE}: StackName", TOLD, creating("1s")),
        row("CreateStack", "name with an underscore", "Member must satisfy regular expression pattern",
            f"{CREATE}: StackName", TOLD, creating("my_stack")),
        row("CreateStack", "name in use", "Stack [s] already exists", f"{CREATE}: AlreadyExistsException", TOLD,
            calling(twice)),
        row("CreateStack", "51 tags", "Value at 'tags' failed to satisfy constraint", f"{CREATE}: Tags", TOLD,
            creating(tags=many)),
        row("CreateStack", "a tag of AWS's", "Tag aws:a is not valid", f"[Tag]({API}/API_Tag.html)", TOLD,
            creating(tags={"aws:a": "b"})),
        row("CreateStack", "capability that does not exist", "at 'capabilities' failed to satisfy constraint",
            f"{CREATE}: Capabilities", TOLD, creating(capabilities=["CAPABILITY_ADMIN"])),
        row("CreateStack", "a managed policy without capabilities", "Requires capabilities : [CAPABILITY_IAM]",
            f"guide: [acknowledging IAM resources]({GUIDE}/control-access-with-iam.html)", TOLD,
            template(Resources={"P": managed})),
        row("CreateStack", "a body of more than 51,200 bytes", "must have length less than or equal to 51200", QUOTAS,
            TOLD, template(Description="x", Metadata={"a": "x" * 51_200})),
        row("CreateStack", "no JSON", "JSON not well-formed", f"guide: [formats]({GUIDE}/template-formats.html)", TOLD,
            ServiceCall(lambda cloud: cloud.create_stack("s", body="{"))),
        row("CreateStack", "a template that is not in S3", "TemplateURL must be a supported URL", CREATE, TOLD,
            ServiceCall(lambda cloud: cloud.create_stack("s", url="https://example.com/a.json"))),
        row("CreateStack", "a template that is gone", "S3 error",
            f"{CREATE}: TemplateURL", TOLD, ServiceCall(lambda cloud: cloud.create_stack(
                "s", url=f"https://none.s3.{REGION}.amazonaws.com/a.json"))),
        row("CreateStack", "a 2,001st stack", "Limit for stack has been exceeded", QUOTAS, TOLD,
            calling(_too_many_stacks)),
        row("CreateStack", "a stack policy that is no JSON", "Invalid stack policy", policy_api, TOLD,
            _policy("allow")),
        row("SetStackPolicy", "a stack policy about what the template does not have",
            "Unknown logical id 'LogicalResourceId/Gone' in statement {}",
            "[sparkleformation/sfn#238](https://github.com/sparkleformation/sfn/issues/238)", "seen",
            calling(_policy_about_nothing)),
        row("CreateStack", "a stack policy of more than 16,384 bytes", "Value at 'stackPolicyBody' failed to satisfy",
            policy_api, TOLD, _policy(" " * 16_385)),
        row("CreateStack", "an export that another stack has",
            "Export with name shared is already exported by stack one",
            f"guide: [Outputs]({GUIDE}/outputs-section-structure.html)", TOLD, calling(_exported_twice)),
        row("CreateStack", "an import that nobody exports", "No export named gone found",
            f"template reference: [Fn::ImportValue]({REFERENCE}/intrinsic-function-reference-importvalue.html)", TOLD,
            calling(_no_export)),
        row("CreateStack", "an output of another stack that does not exist",
            "Stack with id gone does not exist",
            f"template reference: [Fn::GetStackOutput]({REFERENCE}/intrinsic-function-reference-getstackoutput.html)",
            "assumed", calling(_no_other_stack)),
        row("CreateStack", "an output that another stack does not have",
            "Output gone does not exist in stack other",
            f"template reference: [Fn::GetStackOutput]({REFERENCE}/intrinsic-function-reference-getstackoutput.html)",
            "assumed", calling(_no_output)),
        row("DeleteStack", "a role to which someone has attached a policy", "must detach all policies first",
            "IAM: [DeleteRole](https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteRole.html)", TOLD,
            _deletion(role(), _attach)),
        row("DeleteStack", "a bucket with an object", "The bucket you tried to delete is not empty",
            f"guide: [troubleshooting]({GUIDE}/troubleshooting.html)", TOLD,
            _deletion({"Type": "AWS::S3::Bucket"}, _fill)),
        row("DeleteStack", "an export in use", "Export shared cannot be deleted as it is in use by two",
            "[aws/aws-cdk#604](https://github.com/aws/aws-cdk/issues/604)", "seen",
            calling(_deleted_with_an_export_in_use)),
        row("CreateStack", "a service that throttles for too long", "Rate exceeded",
            "[aws/aws-cdk#9882](https://github.com/aws/aws-cdk/issues/9882)", "seen", TestedElsewhere(
                "aws/test_emulator_stacks.py::test_throttling_of_a_service_is_outlasted_for_a_while")),
        row("UpdateStack", "an export in use that goes", "Export shared cannot be deleted as it is in use by two",
            f"guide: [Outputs]({GUIDE}/outputs-section-structure.html)", TOLD, calling(_export_in_use)),
        row("UpdateStack", "nothing to update", "No updates are to be performed",
            f"[UpdateStack]({API}/API_UpdateStack.html)", "seen", calling(_no_change)),
        row("UpdateStack", "a stack whose creation has failed", "is in ROLLBACK_COMPLETE state and can not be updated",
            f"guide: [stack status codes]({GUIDE}/view-stack-events.html)", "seen", calling(_after_rollback)),
        row("UpdateStack", "another type under the same id", "Update of resource type is not permitted",
            f"guide: [troubleshooting]({GUIDE}/troubleshooting.html)", TOLD,
            Update(lambda: {"It": GATEWAY}, lambda first: {"It": {"Type": "AWS::EC2::EIP"}}, "It")),
        row("CreateChangeSet", "name with an underscore", "at 'changeSetName' failed to satisfy constraint",
            f"{change_api}: ChangeSetName", TOLD, _change_set("my_changes")),
        row("CreateChangeSet", "a creation of a stack that exists", "already exists and cannot be created again",
            f"{change_api}: ChangeSetType", TOLD, _change_set(kind="CREATE")),
        row("AWS::CloudFormation::WaitCondition", "a time-out of more than twelve hours", "maximum of 12 hours",
            f"template reference: [CreationPolicy]({REFERENCE}/aws-attribute-creationpolicy.html)", TOLD,
            signal(Timeout="PT12H1S")),
        row("AWS::CloudFormation::WaitCondition", "a number of signals that is none", "is no whole number",
            f"template reference: [CreationPolicy]({REFERENCE}/aws-attribute-creationpolicy.html)", TOLD,
            signal(Count="two")),
        row("AWS::CloudFormation::WaitCondition", "a time-out that is none", "is no duration",
            f"template reference: [CreationPolicy]({REFERENCE}/aws-attribute-creationpolicy.html)", TOLD,
            signal(Timeout="20 minutes")),
        row("SignalResource", "a unique id that has signalled before",
            "Signal with ID i-1 for resource It already exists",
            "[kube-aws#1274](https://github.com/kubernetes-retired/kube-aws/pull/1274)", "seen",
            calling(_signalled_twice)),
        row("AWS::CloudFormation::WaitCondition", "no signal at all comes",
            "Failed to receive 1 resource signal(s) within the specified duration",
            f"template reference: [CreationPolicy]({REFERENCE}/aws-attribute-creationpolicy.html)", "seen",
            signal(Timeout="PT5M")),
        row("AWS::CloudFormation::Stack", "a parameter that its template does not have", "do not exist in the template",
            f"template reference: [nested stacks]({REFERENCE}/aws-resource-cloudformation-stack.html)", TOLD,
            child({"Resources": {"G": GATEWAY}}, Parameters={"P": "1"})),
        row("AWS::CloudFormation::Stack", "a parameter without a value", "must have values",
            f"template reference: [nested stacks]({REFERENCE}/aws-resource-cloudformation-stack.html)", TOLD,
            child({"Resources": {"G": GATEWAY}, "Parameters": {"P": {"Type": "String"}}})),
        row("AWS::CloudFormation::Stack", "a template that is refused", "Unresolved resource dependencies",
            f"template reference: [nested stacks]({REFERENCE}/aws-resource-cloudformation-stack.html)", TOLD,
            child({"Resources": {"G": {**GATEWAY, "DependsOn": "Gone"}}})),
        *(
            row("ContinueUpdateRollback", condition, words, continuing, TOLD,
                TestedElsewhere(f"aws/test_updates_failures.py::{test}"))
            for condition, words, test in (
                ("skipping what was only cancelled",
                 "You can't specify resources that are in the UPDATE_FAILED state for other reasons",
                 "test_what_was_only_cancelled_is_not_skipped"),
                ("skipping a nested stack as a whole", "cannot be skipped: its embedded stack is in",
                 "test_a_nested_stack_is_not_skipped_as_a_whole"),
            )
        ),
        row("Any operation", "too many calls", "Rate exceeded", f"[common errors]({API}/CommonErrors.html): Throttling",
            "documented", TestedElsewhere("aws/test_api_faults.py::test_throttling_of_the_next_calls_of_an_operation")),
    ]  # fmt: skip


ROWS = [*functions(), *sections(), *parameters(), *calls()]
