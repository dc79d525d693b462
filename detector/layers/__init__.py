"""What to pull next beyond single lines: six layers from scheduling to the system, filtered by what a run showed."""
