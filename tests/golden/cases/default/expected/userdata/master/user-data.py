#!/usr/bin/python3
# cfngen's boot program, packed; `cfngen userdata` shows it.
import base64, json, lzma, os, subprocess
REFERENCES = {"stack": "${stack}", "resource": "MasterAAutoScalingGroup", "volumeId": "${volumeId}", "privateAddress": "${privateAddress}", "slot": "${slot}", "addressA": "${addressA}", "caSecretArn": "${caSecretArn}", "joinSecretArn": "${joinSecretArn}", "routeTableId": "${routeTableId}", "bucket": "${bucket}", "publicAddress": "${publicAddress}", "condition": "MasterAWaitCondition", "conditionStack": "${conditionStack}"}
PROGRAM = "… 8632 characters: boot/__main__.py, boot/machine.py, boot/packages.py, boot/program.py, boot/reasons.py, boot/runner.py, boot/state.py, cfngen-boot.service, config.json, packed …"
os.umask(0o077)
home = os.environ.get("CFNGEN_ROOT", "") + "/opt/cfngen/"
items = lzma.decompress(base64.b85decode(PROGRAM)).decode().split("\0")
for path, text in [("references.json", json.dumps(REFERENCES)), *zip(items[::2], items[1::2])]:
    os.makedirs(os.path.dirname(home + path), exist_ok=True)
    with open(home + path, "w") as file:
        file.write(text)
os.chmod(home + "cfngen-boot.service", 0o644)
for order in (["enable", home + "cfngen-boot.service"], ["restart", "--no-block", "cfngen-boot.service"]):
    subprocess.run(["systemctl", *order], check=True)
