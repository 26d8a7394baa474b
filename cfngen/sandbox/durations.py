"""How long operations take on AWS: AWS publishes few durations, so most come from people's logs or are estimates.

They are passed to an emulated account as `durations`. Tests that do not need them leave them out, so that operations
take no time. The duration of a creation is the time between the first and the last event of the resource.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cfngen.sandbox.services.replacements import PASSED_HEALTH_CHECK
from cfngen.sandbox.services.scaling_activities import REPLACEMENT, RETRY, SHUTTING_DOWN

# The sources of durations: issues with logs, and pages of AWS's documentation.
EKS_LOG = "awslabs/amazon-eks-ami#66"
ECS_LOG = "aws/aws-cli#3952"
VPC_LOG = "widdix/aws-s3-virusscan#39"
OPENSHIFT_LOG = "openshift/openshift-ansible-contrib#1012"
INSTANCE_PROFILE_LOG = "hashicorp/terraform#15341"
NAT_GATEWAY_LOG = "terraform-aws-modules/terraform-aws-vpc#999"
# CloudFormation waits until a distribution is deployed, 3 to 15 minutes; an access control takes 2.3 s.
DISTRIBUTION_LOG = "go-to-k/cdkd#1311"
ACCESS_CONTROL_LOG = "go-to-k/cdkd#1287"
LOAD_BALANCER_PAGE = "Elastic Load Balancing user guide: a new load balancer is `provisioning` for a few minutes"


@dataclass(frozen=True)
class Duration:
    """How long something takes.

    Attributes:
        name: a resource type, or an operation of a service.
        seconds: duration of the resource's creation, or of the operation.
        evidence: `documented` by AWS, `seen` in a log, or `assumed`.
        source: the page, or the issue with the log.
        update: seconds of an update in place.
        delete: seconds of a deletion.
    """

    name: str
    seconds: float
    evidence: Literal["documented", "seen", "assumed"] = "assumed"
    source: str = ""
    update: float = 5.0
    delete: float = 5.0


TABLE_OF_DURATIONS = (
    Duration("AWS::AutoScaling::AutoScalingGroup", 4, delete=4),
    # A deletion disables the distribution first, which takes as long as an update.
    Duration("AWS::CloudFront::Distribution", 240, "seen", DISTRIBUTION_LOG, update=240, delete=270),
    Duration("AWS::CloudFront::OriginAccessControl", 2.3, "seen", ACCESS_CONTROL_LOG),
    Duration("AWS::EC2::CapacityReservation", 10, delete=10),
    Duration("AWS::EC2::DHCPOptions", 12),
    Duration("AWS::EC2::EIP", 16, delete=10),
    Duration("AWS::EC2::EIPAssociation", 16, "seen", OPENSHIFT_LOG),
    Duration("AWS::EC2::FlowLog", 3),
    Duration("AWS::EC2::InternetGateway", 16, "seen", ECS_LOG, delete=10),
    Duration("AWS::EC2::KeyPair", 1, delete=1),
    Duration("AWS::EC2::LaunchTemplate", 4),
    Duration("AWS::EC2::NatGateway", 115, "seen", NAT_GATEWAY_LOG, delete=60),
    Duration("AWS::EC2::NetworkInterface", 4),
    Duration("AWS::EC2::Route", 15, "seen", VPC_LOG),
    Duration("AWS::EC2::RouteTable", 9),
    Duration("AWS::EC2::SecurityGroup", 6),
    Duration("AWS::EC2::SecurityGroupIngress", 1, delete=1),
    Duration("AWS::EC2::Subnet", 4),
    Duration("AWS::EC2::SubnetRouteTableAssociation", 15, "seen", VPC_LOG),
    Duration("AWS::EC2::VPC", 16, "seen", ECS_LOG),
    Duration("AWS::EC2::VPCCidrBlock", 15),
    Duration("AWS::EC2::VPCDHCPOptionsAssociation", 3),
    # The same for both types of endpoints, although those of gateways are there within seconds.
    Duration("AWS::EC2::VPCEndpoint", 75, update=30, delete=60),
    Duration("AWS::EC2::VPCGatewayAttachment", 15, delete=10),
    # A deletion only starts the snapshot.
    Duration("AWS::EC2::Volume", 8, delete=15),
    Duration("AWS::ECR::Repository", 3),
    Duration("AWS::ElasticLoadBalancingV2::Listener", 2),
    Duration("AWS::ElasticLoadBalancingV2::LoadBalancer", 135, "documented", LOAD_BALANCER_PAGE, delete=15),
    Duration("AWS::ElasticLoadBalancingV2::TargetGroup", 6),
    Duration("AWS::IAM::InstanceProfile", 122, "seen", INSTANCE_PROFILE_LOG),
    Duration("AWS::IAM::OIDCProvider", 3),
    Duration("AWS::IAM::Role", 16, "seen", ECS_LOG),
    Duration("AWS::KMS::Key", 18),
    Duration("AWS::Logs::LogGroup", 3),
    # Changes are on all name servers within 60 seconds ("How Route 53 determines the status of changes").
    Duration("AWS::Route53::HostedZone", 45, delete=45),
    Duration("AWS::Route53::RecordSet", 45, update=45, delete=45),
    Duration("AWS::S3::Bucket", 22),
    Duration("AWS::S3::BucketPolicy", 2),
    Duration("AWS::SecretsManager::Secret", 2),
    Duration(SHUTTING_DOWN, 45),
    Duration(REPLACEMENT, 12, "seen", EKS_LOG),
    Duration(RETRY, 30),
    Duration(PASSED_HEALTH_CHECK, 60),
)


DURATIONS: dict[str, float] = {
    **{duration.name: duration.seconds for duration in TABLE_OF_DURATIONS},
    **{f"update {duration.name}": duration.update for duration in TABLE_OF_DURATIONS},
    **{f"delete {duration.name}": duration.delete for duration in TABLE_OF_DURATIONS},
}
"""Seconds by the name of each creation, update and deletion."""
