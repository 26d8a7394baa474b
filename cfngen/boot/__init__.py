"""The program that runs on an instance: it turns a plain machine image into a master or a node.

It needs Python 3.9 and, after its first steps, the distribution's boto3; nothing else of cfngen is on the instance. The
modules of this folder run in every boot. The steps of both masters and nodes are in `host`, the steps of masters only
in `master`, and the steps of nodes only in `node`. `cfngen.userdata` packs the modules that a role needs: the first
stage into user data, the second stage into the stack, from where `program` fetches it. On an instance the package is
called `boot`, so all imports are relative.

`python3 -m boot` boots; `python3 -m boot TASK` does a timer's work. Whatever touches the instance or AWS goes through
`machine.Machine`.
"""
