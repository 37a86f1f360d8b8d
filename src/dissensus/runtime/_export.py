"""Whether a model is traced rather than run."""


def exporting() -> bool:
    """Whether ``torch.export`` is tracing: sizes may be symbols then, and tensors have no values to look at.

    Models can be exported from torch 2.7 on; an older one never says so.
    """
    import torch

    is_exporting = getattr(torch.compiler, "is_exporting", None)
    return is_exporting is not None and bool(is_exporting())
