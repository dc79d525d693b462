"""What a run looked like: kernels, launches, copies and a timeline, small enough to be kept in a report."""
