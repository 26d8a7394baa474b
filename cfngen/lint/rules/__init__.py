"""Rules of cfngen, for faults that cfn-lint does not report.

These are ordinary cfn-lint rules, with ids from the ranges that cfn-lint reserves for its users (E9, W9, I9). The
`cfn-lint` command can apply them to templates that cfngen did not generate:

    cfn-lint your-own.yaml -a "$(cfngen lint --rules-dir)"

(`-a` takes all arguments after it, so the template must come before `-a`.)

cfn-lint loads each file of this directory separately, perhaps in a Python installation without cfngen. So no file here
imports from cfngen, or from another file here, at run time; `text_limits.py` and `templates/expressions.py` are loaded
by their paths.

| id | refuses |
|---|---|
| E9001 | UserData of more than 16 KiB |
| E9002 | a template above the 1 MB that CloudFormation reads from S3 |
| I9003 | a template above the 51,200 bytes that CloudFormation takes in the request itself |
| W9010 | a security-group rule without a description |
| W9011 | a resource without tags that could have tags |
| W9012 | instances that answer metadata requests without a session token (IMDSv1) |
| W9013 | a volume that is not encrypted |
| E9014 | a secret in plain text |
| E9015 | a malformed CreationPolicy, or a pause in an UpdatePolicy that CloudFormation cannot read |
| E9016 | two exports of the same name |
| W9017 | a launch configuration |
| E9018 | a parameter of a nested stack that is missing or cannot take the value passed |
| E9019 | a parameter of a nested stack that cannot take a value which is not known when a change set is made |
| E9020 | a text that its service does not take: a character, or too many of them |
| E9021 | tags of an IAM resource that differ in upper and lower case only |
| W9022 | instances with tags that the metadata service cannot show, where the account decides whether it shall |
| E9023 | a mixed instances policy whose launch template requests Spot Instances by itself |
| E9024 | a placeholder such as `${Issuer}` in a key, where CloudFormation replaces nothing |
"""
