import torch

from dissensus.studies import theory


def test_settings_satisfy_what_they_claim():
    for s in theory.settings(20, 5):
        assert torch.allclose(s.communication.sum(1), torch.ones(20, dtype=torch.float64))
        assert torch.allclose(s.options.sum(1), torch.ones(3, dtype=torch.float64))
        assert bool((s.communication >= 0).all())
        assert bool(((s.communication > 0) == (s.communication > 0).T).all())
        assert bool((torch.linalg.matrix_power((s.communication > 0).double(), 20) > 0).all())
        assert bool((s.communication.diagonal() > 0).all())
        assert s.source is s.start
