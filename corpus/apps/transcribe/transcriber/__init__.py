"""Speech to text in small: voice activity, log-mel features, a convolutional encoder, greedy CTC."""
