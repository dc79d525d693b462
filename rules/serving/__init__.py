"""AWP8xx: servers and engine configuration."""
