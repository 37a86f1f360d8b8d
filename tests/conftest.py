"""What every test shares: one thread a worker, and repeatable, unhurried Hypothesis runs."""

import os

from hypothesis import HealthCheck, settings

# Read when torch is loaded, here and in the processes that tests start: test workers share the cores among themselves.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

settings.register_profile(
    "dissensus", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dissensus")
