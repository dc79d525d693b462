"""AWP6xx: memory and transfers."""
