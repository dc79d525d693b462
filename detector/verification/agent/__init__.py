"""The part of a proof that lives inside the user's program.

Only the standard library, and torch once the program has imported it; the syntax is valid on Python 3.9. No fault is
ever raised into the program. It shares injection, files and unit ticks with the profile run's agent.
"""
