"""The profile run: launch, agent, timeline, attribution, telemetry."""
