"""The report as one HTML file: opens offline, light and dark, prints."""
