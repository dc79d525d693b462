"""Which files: walking, screening, sources, caching, parallel work."""
