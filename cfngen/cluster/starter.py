"""The commented cluster file that `cfngen init` writes: the default cluster, ready to be changed."""

from __future__ import annotations

STARTER_FILE = """\
# A Kubernetes cluster on EC2. `cfngen templates` makes CloudFormation templates of it.
#
# Every line that begins with #key is a default: remove the # and change the value. As it is, this file describes
# kube-up's cluster: one master and four nodes in us-west-2a. `cfngen config` shows every value in effect.

# Name of the cluster, also of its stack, its tags and its kubeconfig context.
name: kubernetes

# AWS region. Default: the region of the first subnet's zone.
#region: us-west-2

# Kubernetes version: a minor version (its newest known patch is used) or an exact one.
kubernetesVersion: "1.36"

# Addresses: the VPC, its subnets (one for each zone), pods and services.
#network:
#  vpc:
#    cidr: 172.20.0.0/16
#    # id: vpc-0123456789abcdef0       # use this VPC instead of creating one; cidr is its range
#  subnets:
#    - zone: us-west-2a
#      cidr: 172.20.0.0/24             # left out: the next free /24 of the VPC
#      # id: subnet-0123456789abcdef0  # use this subnet instead of creating one
#  podCidr: 10.244.0.0/16              # each node gets a /24 of it
#  serviceCidr: 10.0.0.0/16
#  dnsDomain: cluster.local
#  # nonMasqueradeCidr: 10.0.0.0/8     # pods keep their address towards this range, too

# The Kubernetes API. Without allowedCidrs, the range that may reach it is a stack parameter.
#api:
#  port: 443
#  allowedCidrs: []
#  public: true                        # false needs a NAT gateway of your own
#  additionalNames: []                 # further names in the API server's certificate

# Shells on instances. SSH is closed unless ranges are allowed; Session Manager needs no open port.
#ssh:
#  # keyName: my-key                   # an EC2 key pair that exists, or
#  # publicKey: ssh-ed25519 AAAA...    # a key to import
#  allowedCidrs: []
#  sessionManager: true

# Operating system of all instances: ubuntu-24.04, ubuntu-22.04, debian-12, debian-13 or amazon-linux-2023.
#image:
#  distribution: ubuntu-24.04
#  # id: ami-0123456789abcdef0         # an image of your own

# The masters: 1, 3 or 5, each with a fixed address in a subnet. A master's data volume holds etcd and outlives the
# instance. Three in three zones keep the API up when one is lost; the number may grow later, never shrink.
#controlPlane:
#  count: 1
#  # addresses: [172.20.0.9]           # left out: the ninth of each subnet
#  instanceType: t3.medium
#  volume:
#    size: 20
#    type: gp3
#  rootVolume:
#    size: 20
#    type: gp3

# Groups of nodes; each is an Auto Scaling group and a stack of its own.
nodeGroups:
  - name: nodes
    instanceType: t3.medium            # t4g.medium and other Graviton types run arm64
    minSize: 4
    maxSize: 4
    # desiredSize: 4                   # left out: the Auto Scaling group decides
    # spotPrice: "0.05"                # run spot instances up to this price in US dollars per hour
    # Several types instead of one: `instanceTypes: [m7i.large, m7a.large]`. AWS takes one that it has.
    # zones: [us-west-2a]              # left out: the zones of all subnets
    # publicIp: true                   # false needs a NAT gateway of your own
    # rootVolume: {size: 32, type: gp3}
    # GPU nodes are a group with a type such as g6.xlarge and `gpu: nvidia`: docs/build/nodes.md.

# An instance through which users reach the others by SSH; Session Manager needs none.
#bastion:
#  # It needs an SSH key, and the ranges that may reach it, e.g. `allowedCidrs: [203.0.113.7/32]`.

# Snapshots of etcd in an S3 bucket, which outlives the cluster.
#etcd:
#  backups:
#    enabled: true
#    interval: 15                      # minutes
#    hourlyDays: 7
#    dailyDays: 90
#    # bucket: my-etcd-backups         # a bucket of your own in the cluster's region

# The first master creates the certificate authority, unless a secret contains one.
#certificateAuthority:
#  # secret: arn:aws:secretsmanager:us-west-2:123456789012:secret:my-ca-AbCdEf

# Add-ons: Helm charts in versions that match the Kubernetes version. `values` is passed to the chart.
#addons:
#  awsEbsCsiDriver: {enabled: true}
#  metricsServer: {enabled: true}
#  clusterAutoscaler: {enabled: false}
#  nodeTerminationHandler: {enabled: false}
#  awsLoadBalancerController: {enabled: false}
#  externalDns: {enabled: false}
#  certManager: {enabled: false}
#  headlamp: {enabled: false}
#  fluentBit: {enabled: false}
#  prometheus: {enabled: false}
#  nvidiaDevicePlugin: {enabled: false}  # true if a node group has gpu

# The cluster's secrets in AWS Secrets Manager; left out, a KMS key is made for them.
#secrets:
#  # kmsKey: arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab

# With it AWS accepts the tokens of service accounts: IAM roles for pods and for add-ons (docs/build/pod-roles.md).
#serviceAccountIssuer:
#  # discovery: cloudFront

# Rules of your organisation for IAM roles; existing roles in place of those that are made.
#iam:
#  # permissionsBoundary: arn:aws:iam::123456789012:policy/boundary
#  # masters: {role: arn:aws:iam::123456789012:role/masters}
#  # nodes: {role: arn:aws:iam::123456789012:role/nodes}
#  # serviceAccounts: [{namespace: shop, name: web, additionalPolicies: ["arn:aws:iam::123456789012:policy/web"]}]

# Where instances fetch Kubernetes' files from; left out, from their publishers.
#assets:
#  # mirror: https://mirror.example.com/k8s

# Fields of kubeadm's ClusterConfiguration and of the KubeletConfiguration, merged into what cfngen writes.
#kubernetes:
#  clusterConfiguration: {}
#  kubeletConfiguration: {}

# Further tags for every resource that takes tags.
#tags: {}
"""
"""Text of the file; loaded as it is, or with every `#key` line uncommented, it gives the default cluster."""
