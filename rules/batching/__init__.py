"""AWP2xx: work done item by item that could be one batch."""
