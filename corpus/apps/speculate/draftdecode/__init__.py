"""Speculative decoding in small: a draft model proposes, the target model accepts or corrects."""
