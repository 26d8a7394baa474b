"""Who may do what: the IAM policies of instances' roles, of operators, and of CloudFormation's service role.

Each grantee has a module that lists its statements. `grants` has all grants for one cluster, cut into policies that IAM
accepts; templates put the statements of instances into their roles.
"""
