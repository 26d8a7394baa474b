"""The program that runs on an instance: it turns a plain machine image into a master or a node.

It needs Python 3.9 and, after its first steps, the distribution's boto3; nothing else of cfngen is on the instance. The
modules that every boot runs are in this folder. The steps of both roles are in `host`, those of one role in `master`
and `node`. `cfngen.userdata` packs the modules that a role needs, the first ones into user data, the others into the
stack, from where `program` fetches them; on an instance the package is called `boot`, so all imports are relative.

`python3 -m boot` boots; `python3 -m boot TASK` does a timer's work. Whatever touches the instance or AWS goes through
`machine.Machine`.
"""
