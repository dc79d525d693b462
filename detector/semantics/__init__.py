"""What the code means: names, values, frequency, calls, library facts."""
