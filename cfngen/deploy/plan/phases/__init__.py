"""An update in phases: volumes, then the control plane, then node groups, each as a stack update of its own.

When a stack update fails, CloudFormation rolls back all of it. So each stack update contains only what may be rolled
back together: a node group that fails must not roll back masters that have upgraded etcd's data, and no rollback may
shrink a volume, which EBS refuses.

`phases` divides a plan into parts and plans each, and `documents` makes the templates of one.
"""
