"""Pull-request comments."""
