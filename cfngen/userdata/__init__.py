"""Builds the user data of masters and nodes: the boot program and its configuration, within EC2's limit of 16 KiB."""

from cfngen.userdata.pack import UserData, UserDataTooLargeError
from cfngen.userdata.references import address_reference
from cfngen.userdata.role_configuration import master, node, roles

__all__ = ["UserData", "UserDataTooLargeError", "address_reference", "master", "node", "roles"]
