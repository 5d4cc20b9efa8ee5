"""A graphics card, or another device of the array API, on which local steps are computed."""

from .devices import Device, device_of
from .staging import LANES
from .visits import OnDevice, refusal, returning_kind

__all__ = ["LANES", "Device", "OnDevice", "device_of", "refusal", "returning_kind"]
