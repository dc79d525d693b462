"""A small chat service: a Llama-style decoder, a reranker for context, batching and HTTP streaming."""
