"""The steps of a master."""

from . import control_plane, join_information, system
from .volume import volume

STEPS = {
    "packages": system.packages,
    "settings": system.settings,
    "downloads": system.downloads,
    "services": system.services,
    "volume": volume,
    "authorities": control_plane.prepare,
    "control plane": control_plane.start,
    "add-ons": control_plane.addons,
    "join information": join_information.publish,
}
RENEW = {"join information": join_information.publish}
