"""One base model, many low-rank adapters: requests for different adapters are decoded in one batch."""
