"""AWP3xx: kernels that one call could do, and work that need not be done."""
