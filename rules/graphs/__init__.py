"""AWP4xx: CUDA graphs and compilation."""
