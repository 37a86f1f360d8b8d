"""What every test shares: repeatable, unhurried Hypothesis runs."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "dissensus", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dissensus")
