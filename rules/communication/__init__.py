"""AWP9xx: collectives between ranks."""
