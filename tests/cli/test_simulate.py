import json
from pathlib import Path

import numpy as np
import pytest

from dissensus import dynamics
from dissensus.cli import main


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["simulate", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_command_writes_pictures_and_every_opinion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "karate", "--options", "2", "--option-weight", "-0.5", "--time", "5", "-o", str(tmp_path))
    assert found["agents"] == 34
    assert found["attention"] == pytest.approx(found["critical_attention"])
    assert sorted(Path(file).name for file in found["files"]) == ["opinions.csv", "opinions.png", "opinions.svg"]
    assert (tmp_path / "opinions.png").read_bytes().startswith(b"\x89PNG")
    table = np.loadtxt(tmp_path / "opinions.csv", delimiter=",", skiprows=1)
    assert len(table) == 201 * 34 * 2
    last = table[table[:, 0] == 5.0]
    assert [last[last[:, 2] == o, 3].mean() for o in (0, 1)] == pytest.approx(found["mean"])


def test_command_reads_a_signed_edge_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges = tmp_path / "friends.csv"
    edges.write_text("source,target,weight\nann,bob,1\nbob,cat,-1\ncat,dan,1\ndan,ann,-1\n")
    found = answer(capsys, str(edges), "--relative-attention", "2", "--time", "60")
    assert (found["agents"], found["verdict"]) == (4, "polarised")
    assert answer(capsys, str(edges), "--directed", "--relative-attention", "1.5")["neutral"] is False
    one_way = answer(capsys, str(edges), "--directed", "--attention", "0.4", "--time", "60")
    assert one_way["verdict"] == "consensus"


@pytest.mark.slow
@pytest.mark.parametrize("given", ["edges.csv", ""])
@pytest.mark.parametrize("flags", [[], ["--directed"]])
def test_command_reads_an_edge_list_alike_with_and_without_a_table_of_nodes(
    given: str, flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, alone = tmp_path / "graph", tmp_path / "friends.csv"
    folder.mkdir()
    text = "source,target,weight\nann,bob,2\nbob,ann,0.5\nbob,cat,-1\ncat,dan,1\ndan,ann,-0.5\n"
    alone.write_text(text)
    (folder / "edges.csv").write_text(text)
    (folder / "nodes.csv").write_text("id,age\nann,1\nbob,2\ncat,3\ndan,4\n")
    wanted = ("critical_attention", "mean", "verdict")
    arguments = (*flags, "--time", "20", "--relative-attention", "1.5")
    with_nodes, without = (answer(capsys, str(path), *arguments) for path in (folder / given, alone))
    assert [with_nodes[key] for key in wanted] == [without[key] for key in wanted]
    (folder / "nodes.csv").write_text("id,age\nann,1\nbob,2\ncat,3\ndan,4\neve,5\n")
    assert answer(capsys, str(folder / given), *arguments)["agents"] == 5


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("source,target,trust\na,b,3\n", 1.0),
        ("target,source,weight\nb,a,3\n", 3.0),
        ("since,weight,source,target\n1999,-3,a,b\n", -3.0),
        ("source,target,weight\na,b,\n", None),
        ("source,target,weight\na,b,inf\n", None),
    ],
)
def test_columns_of_edges_are_found_by_their_names(
    text: str, weight: float | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, alone = tmp_path / "graph", tmp_path / "friends.csv"
    folder.mkdir()
    for path in (alone, folder / "edges.csv"):
        path.write_text(text)
    (folder / "nodes.csv").write_text("id,age\na,1\nb,2\n")
    for path in (alone, folder):
        if weight is None:
            assert main(["simulate", str(path)]) == 1
            assert "column 'weight'" in capsys.readouterr().err
        else:
            assert dynamics.as_matrix(str(path), directed=True).toarray().tolist() == [[0.0, 0.0], [weight, 0.0]]


def test_command_draws_agents_without_edges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nodes.csv").write_text("id,age\na,1\nb,2\n")
    (tmp_path / "edges.csv").write_text("source,target\n")
    found = answer(capsys, str(tmp_path), "-o", str(tmp_path / "out"), "--time", "2")
    assert (found["agents"], len(found["files"])) == (2, 3)


def test_weights_of_either_sign_are_said_to_belong_in_an_edge_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "foes.npz"
    np.savez(path, x=np.ones((2, 1)), edge_index=np.array([[0, 1], [1, 0]]), edge_weight=np.array([1.0, -1.0]))
    assert main(["simulate", str(path)]) == 1
    assert "from an edge list, .csv" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("graph", "names"),
    [
        (["path", "--agents", "6"], ["neutral consensus", "neutral consensus", "dissensus"]),
        (["friends.csv", "--normalize"], ["neutral consensus", "neutral consensus", "polarised"]),
    ],
)
def test_both_commands_say_the_same_below_at_and_above_the_critical_attention(
    graph: list[str], names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "friends.csv").write_text("ann,bob,1\nbob,cat,-1\ncat,dan,2\ndan,ann,-3\n")
    graph = [str(tmp_path / part) if part.endswith(".csv") else part for part in graph]
    for ratio, name in zip(("0.6", "1", "1.75"), names, strict=True):
        assert main(["simulate", *graph, "--relative-attention", ratio, "--time", "20"]) == 0
        assert capsys.readouterr().out.splitlines()[2].removeprefix("fading to ") == name
    assert main(["simulate", *graph]) == 0
    assert capsys.readouterr().out.splitlines()[2].removeprefix("fading to ") == names[1]
    assert main(["bifurcation", *graph, "--time", "20"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("(a)", "(c)", "(b)"))]
    said = {line[1]: line.partition(": ")[2].partition(",")[0].removeprefix("fading to ") for line in lines}
    assert [said[panel] for panel in "acb"] == names


def test_command_runs_without_a_critical_attention(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "chain.csv").write_text("a,b\nb,c\n")
    chain = [str(tmp_path / "chain.csv"), "--directed", "--self-reinforcement", "0"]
    assert main(["simulate", *chain]) == 1
    assert "stable at every attention" in capsys.readouterr().err
    found = answer(capsys, *chain, "--attention", "2")
    assert (found["attention"], found["critical_attention"], found["neutral"]) == (2.0, None, True)


def test_command_keeps_the_largest_component(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parts.csv").write_text("a,b\nc,d\nd,e\n")
    assert answer(capsys, str(tmp_path / "parts.csv"))["agents"] == 5
    assert answer(capsys, str(tmp_path / "parts.csv"), "--largest-component")["agents"] == 3


@pytest.mark.parametrize("shape", ["grid", "path", "cycle", "complete", "star", "barabasi-albert"])
def test_command_knows_shapes(shape: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, shape, "--agents", "7", "--model", "degroot", "--time", "300")
    assert (found["agents"], found["verdict"]) == (7, "consensus")


def test_command_takes_initial_opinions_and_inputs_from_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = tmp_path / "values.csv"
    values.write_text("\n".join(map(str, [0.1, 0.2, 0.3, 0.4])))
    base = ("path", "--agents", "4", "--time", "200", "--relative-attention", "0.5")
    by_file = answer(capsys, *base, "--initial", str(values), "--input", str(values))
    by_word = answer(capsys, *base, "--initial", str(values), "--input", "initial")
    assert by_file["mean"] == pytest.approx(by_word["mean"])
    assert by_file["verdict"] == "dissensus"
    assert answer(capsys, *base, "--input", "initial*0")["neutral"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["grid", "--agents", "1"], "at least 2"),
        (["nowhere"], "unknown graph"),
        (["gird"], "did you mean 'grid'"),
        (["grid", "--options", "0"], "at least 1"),
        (["grid", "--attention", "1", "--relative-attention", "1"], "leave one out"),
        (["grid", "--model", "degroot", "--attention", "1"], "leave out attention"),
        (["grid", "--model", "consensus", "--damping", "7", "--saturation", "x"], "leave out damping, saturation"),
        (["grid", "--input", "much"], "give a number"),
        (["grid", "--initial", "nowhere.csv"], "cannot be read"),
        (["missing.csv"], "does not exist"),
        (["grid", "-o", "/dev/null/pictures"], "cannot be created"),
        (["grid", "-o", "nowhere/picture.jpg"], "use one, or give a folder"),
        (["grid", "--time", "1e6"], "lower --time or --attention"),
    ],
)
def test_command_refuses_bad_input(arguments: list[str], cure: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *arguments]) == 1
    assert cure in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("a,b,c,d\n", "not an edge"),
        ("a,b,x\n", "not an edge"),
        ("from,to,trust\na,b,1\n", "names these columns"),
        ("a,b,1\nc,d,x\n", "line 2, column 'weight': 'x'"),
        ("a,b,1\nc,,1\n", "line 2: 'c,,1' is not an edge"),
        ("a\n", "not an edge"),
        ("a,b\nb,c,2\n", "3 cells where the first line has 2"),
        ("", "no edges"),
        ("source,target,weight\n", "no edges"),
    ],
)
def test_command_refuses_bad_edge_lists(
    text: str, cure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "e.csv").write_text(text)
    assert main(["simulate", str(tmp_path / "e.csv")]) == 1
    assert cure in capsys.readouterr().err
