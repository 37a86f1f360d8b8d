from pathlib import Path

import pytest

from dissensus.files import whole


def test_a_file_is_replaced_as_a_whole_or_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with whole(path) as draft:
        draft.write_text("first")
        assert not path.exists()
    assert path.read_text() == "first"
    with pytest.raises(TypeError), whole(path) as draft:
        draft.write_text(None)
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]
