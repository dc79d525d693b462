"""A click predictor: sparse and dense features of requests, one score for each candidate, in large batches."""
