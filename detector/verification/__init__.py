"""Proof: what each patch saves in the user's own program, and that nothing else changed."""
