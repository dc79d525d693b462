"""AWP1xx: reads of device values that make the host wait."""
