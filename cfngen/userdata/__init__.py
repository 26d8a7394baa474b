"""What an instance is started with: the boot program and its configuration, within EC2's 16 KiB of user data."""

from cfngen.userdata.configuration import master, node, roles
from cfngen.userdata.pack import UserData, UserDataTooLargeError
from cfngen.userdata.references import address_reference

__all__ = ["UserData", "UserDataTooLargeError", "address_reference", "master", "node", "roles"]
