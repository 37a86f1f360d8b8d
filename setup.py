"""The kernels, compiled where there is a compiler, and left out where there is none."""

import sys

from setuptools import Extension, setup

FLAGS = ["-O3", "-g0", "-fopenmp", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]

kernels = Extension(
    "dissensus._kernels",
    ["src/dissensus/_kernels.c"],
    extra_compile_args=FLAGS,
    extra_link_args=["-fopenmp"],
    optional=True,
)
# Elsewhere PyTorch has another OpenMP than the system's compiler: two pools of threads would be in each other's way.
setup(ext_modules=[kernels] if sys.platform == "linux" else [])
