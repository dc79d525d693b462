"""Summaries of long documents in bulk: an encoder-decoder over pieces, then over what the pieces gave."""
