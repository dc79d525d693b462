"""A mixture-of-experts decoder for one user at a time, written to be read."""
