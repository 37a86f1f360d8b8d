from pathlib import Path

import pytest

from dissensus.files import atomic_write


def test_a_file_is_replaced_as_a_whole_or_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with atomic_write(path) as temporary:
        temporary.write_text("first")
        assert not path.exists()
    assert path.read_text() == "first"
    with pytest.raises(TypeError), atomic_write(path) as temporary:
        temporary.write_text(None)
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]
