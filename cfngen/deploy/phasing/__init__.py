"""An update in phases: volumes, then the control plane, then node groups, each an operation of its own.

CloudFormation takes back what a stack's update did as a whole. So one operation holds only what may be taken back
together: a node group that fails must not take back masters that have upgraded etcd's data, and nothing may make
CloudFormation shrink a volume again, which EBS refuses.

`parts` divides a plan, `deployed` reads what the other stacks are to stay at, `documents` makes the templates of one
phase, and `update` carries the phases out.
"""
