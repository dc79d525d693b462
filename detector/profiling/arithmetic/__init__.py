"""How much arithmetic a unit does: operators by their shapes, units by their operators, MFU by the device's peaks."""
