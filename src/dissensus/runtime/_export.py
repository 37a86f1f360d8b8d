"""Detects whether a model is being traced."""


def exporting() -> bool:
    """Whether ``torch.export`` is tracing: then sizes may be symbolic, and tensors have no values that can be checked.

    Always False before torch 2.7, with which models cannot be exported.
    """
    import torch

    is_exporting = getattr(torch.compiler, "is_exporting", None)
    return is_exporting is not None and bool(is_exporting())
