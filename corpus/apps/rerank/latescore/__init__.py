"""A reranker by late interaction: every word of a question looks for its best partner in a passage."""
