"""AWP7xx: number formats and modes."""
