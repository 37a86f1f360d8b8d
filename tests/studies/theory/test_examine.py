import pytest

from dissensus.errors import InputError
from dissensus.studies import theory


def test_the_same_seed_gives_the_same_numbers_and_another_one_others():
    first, again, other = (theory.examine("dissensus", nodes=8, seed=seed).checks[0] for seed in (4, 4, 5))
    assert first == again
    assert first.evidence != other.evidence


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.examine("grand+").checks[0], "did you mean 'grand\\+\\+'"),
        (lambda: theory.evaluate("grand+", []), "unknown check"),
        (lambda: theory.evaluate("grand++", []), "at least one"),
        (lambda: theory.settings(3), "from 4 to 100"),
        (lambda: theory.settings(101), "from 4 to 100"),
        (lambda: theory.settings(seed=-1), "from 0 on"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
