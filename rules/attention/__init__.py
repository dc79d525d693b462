"""AWP5xx: attention and the KV cache."""
