"""The laboratory, end to end in a browser, and its numbers beside the package's."""

import csv
import io
import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from browser import Browser
from dissensus import data, dynamics, measure, report
from dissensus.graph import Pattern
from dissensus.solve import Dopri5, solve

BAD = """</script><script>document.title="owned"</script><img src=x onerror="document.title='owned'">"""
RIGHT, LEFT = ("ArrowRight", 39), ("ArrowLeft", 37)


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory):
    return report.lab(tmp_path_factory.mktemp("laboratory") / "new" / "lab.html")


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def browser(opened, laboratory):
    """At rest on a wide, light page; its console must stay free of errors."""
    opened.problems.clear()
    opened.size(1280, 900)
    opened.prefer("light")
    opened.visit = lambda fragment="", path=laboratory: (opened.open(path, fragment), settle(opened))
    yield opened
    assert not opened.problems


def settle(browser):
    """Until words, charts and address are those of the state."""
    browser.wait("document.querySelector('#status').textContent")
    browser.run("new Promise(done => setTimeout(done, 450))")


def status(browser):
    return browser.run("document.querySelector('#status').textContent")


def problem(browser):
    shown = "document.querySelector('#problem')"
    return browser.run(f"{shown}.hidden ? '' : {shown}.querySelector('span').textContent")


def state(browser):
    return SimpleNamespace(**browser.run("lab.view.state"))


# The same numbers as the package's


SETTINGS = {
    "karate": {"graph": "karate", "u": 0.75, "d": 1.0, "a": 1.0, "b": 0.1, "from": "same", "sign": 1, "seed": 3},
    "compete": {"graph": "random", "n": 40, "u": 1.1, "d": 0.8, "a": 0.5, "b": 0.2, "from": "initial", "sign": -1},
    "signed": {"graph": "own", "edges": "a,b,2\nb,c,-0.5\nc,a\nc,d\nd,e,-1.5\n", "u": 0.6, "d": 1.5, "a": 2.0},
}
DEFAULT = {"n": 60, "seed": 1, "edges": "", "b": 0.3, "from": "same", "sign": 1, "T": 30}
TIMES = [0.0, 0.13, 1.0, 4.7, 11.0, 30.0]
SIMULATE = """((state, model, times) => {
  const graph = lab.makeGraph(state), matrix = lab.communication(graph, state.sign);
  const x0 = lab.initialOpinions(graph.names.length, state.seed);
  const states = lab.trajectory(model, matrix, state, x0, times), lead = lab.leading(matrix);
  return {
    n: graph.names.length, edges: graph.edges, x0: [...x0], states: states.map(x => [...x]),
    critical: lab.criticalAttention(state, lead), w: [...lead.w],
    energy: states.map(x => lab.relativeEnergy(x, matrix)), rank: states.map(x => lab.effectiveRank(x)),
    diagram: lab.reducedDiagram(state, lead, state.b, 3),
  };
})"""


@pytest.fixture(scope="module", params=SETTINGS)
def setting(request, opened, laboratory):
    chosen = DEFAULT | SETTINGS[request.param]
    opened.open(laboratory)

    def simulate(model):
        found = SimpleNamespace(**opened.run(f"{SIMULATE}({json.dumps(chosen)}, '{model}', {TIMES})"))
        i, k, w = np.array(found.edges).T
        matrix = csr_array((w, (i.astype(int), k.astype(int))), shape=(found.n, found.n))
        found.matrix = dynamics.as_matrix(chosen["sign"] * (matrix + matrix.T), normalize=True)
        found.x0 = torch.tensor(found.x0, dtype=torch.float64).reshape(found.n, -1)
        found.states = torch.tensor(found.states, dtype=torch.float64).reshape(len(TIMES), *found.x0.shape)
        found.input = chosen["b"] * (found.x0 if chosen["from"] == "initial" else torch.ones_like(found.x0))
        return found

    return SimpleNamespace(**(chosen | {"from_": chosen["from"]}), simulate=simulate)


def pattern_of(matrix):
    coo = matrix.tocoo()
    row, column = (torch.from_numpy(index.astype(np.int64)) for index in (coo.row, coo.col))
    return Pattern(row, column, matrix.shape), torch.from_numpy(coo.data)


def exact(field, start):
    return solve(field, start, TIMES[-1], Dopri5(rtol=1e-11, atol=1e-12), save_at=TIMES).saved


@pytest.mark.slow
def test_nonlinear_opinions_are_those_of_the_package(setting):
    page = setting.simulate("opinions")
    parameters = {"damping": setting.d, "self_reinforcement": setting.a, "input": page.input, "options": 4}
    simulation = dynamics.simulate(
        page.matrix, page.x0, attention=setting.u, times=TIMES, rtol=1e-11, atol=1e-12, **parameters
    )
    assert float((simulation.states - page.states).abs().max()) < 1e-6
    critical = dynamics.critical_attention(page.matrix, damping=setting.d, self_reinforcement=setting.a)
    assert page.critical == pytest.approx(critical, rel=1e-6)


@pytest.mark.slow
def test_linear_consensus_is_that_of_the_package(setting):
    page = setting.simulate("consensus")
    simulation = dynamics.simulate(page.matrix, page.x0, model="altafini", times=TIMES, rtol=1e-11, atol=1e-12)
    assert float((simulation.states - page.states).abs().max()) < 1e-6


@pytest.mark.slow
def test_grand_is_that_of_the_package(setting):
    page = setting.simulate("grand")
    heard = (abs(page.matrix) + csr_array(np.eye(page.n))) > 0
    scores = (page.x0 @ page.x0.T / page.x0.shape[1] ** 0.5).masked_fill(~torch.tensor(heard.toarray()), -torch.inf)
    pattern, values = pattern_of(csr_array(scores.softmax(1).numpy()))
    field = dynamics.ReactionDiffusion(pattern, values, page.input, linear=-1.0)
    assert float((exact(field, page.x0) - page.states).abs().max()) < 1e-6


@pytest.mark.slow
def test_kuramoto_is_that_of_the_package(setting):
    page = setting.simulate("kuramoto")
    field = dynamics.Kuramoto(*pattern_of(page.matrix), page.input, coupling=setting.u)
    assert float((exact(field, 0.5 * torch.pi * page.x0) - page.states).abs().max()) < 1e-6


@pytest.mark.slow
def test_graphcon_is_that_of_the_package(setting):
    page = setting.simulate("graphcon")
    field = dynamics.Oscillators(*pattern_of(page.matrix), damping=setting.d)
    saved = exact(field, torch.stack([page.x0, page.x0]))[:, 0]
    assert float((saved - page.states).abs().max()) < 1e-6


def test_measures_are_those_of_the_package(setting):
    page = setting.simulate("opinions")
    coo = page.matrix.tocoo()
    edges = torch.from_numpy(np.stack([coo.col, coo.row]).astype(np.int64))
    energy = measure.dirichlet_energy(page.states, edges, relative=True)
    assert torch.tensor(page.energy) == pytest.approx(energy.numpy(), rel=1e-6)
    assert page.rank == pytest.approx(measure.effective_rank(page.states).tolist(), rel=1e-6)


def test_the_karate_club_is_that_of_the_package(opened, laboratory):
    opened.open(laboratory)
    edges = opened.run("lab.makeGraph({graph: 'karate'}).edges")
    graph = data.load("karate").graph
    assert {tuple(sorted(edge)) for edge in graph.edge_index.T.tolist()} == {(i, k) for i, k, _ in edges}


@pytest.mark.slow
@pytest.mark.parametrize("b", [0.0, -0.2])
def test_the_diagram_is_that_of_the_package(opened, laboratory, b):
    opened.open(laboratory)
    chosen = DEFAULT | {"graph": "own", "edges": "a,b", "u": 0.75, "d": 1.0, "a": 1.0, "b": b}
    page = SimpleNamespace(**opened.run(f"{SIMULATE}({json.dumps(chosen)}, 'opinions', [0, 1])"))
    found = dynamics.bifurcation(np.array([[0.0, 1.0], [1.0, 0.0]]), input=b, u_max=1.5)
    assert page.critical == pytest.approx(found.critical)
    assert page.w == pytest.approx(found.weights.ravel().tolist(), abs=1e-9)
    for branch in found.reduced.branches:
        inside = (branch.parameter > 0.05) & (branch.parameter < 1.4)
        for u, z, stable in zip(branch.parameter[inside], branch.z[inside], branch.stable[inside], strict=True):
            apart = min(distance(piece, u, z) for piece in page.diagram if piece["stable"] == bool(stable))
            assert apart < 1e-3


def distance(piece, u, z):
    """From a point to a curve made of segments."""
    at, points = np.array([u, z]), np.stack([piece["u"], piece["z"]], 1)
    first, along = points[:-1], np.diff(points, axis=0)
    share = np.clip(((at - first) * along).sum(1) / np.maximum((along**2).sum(1), 1e-300), 0, 1)
    return float(np.hypot(*(first + share[:, None] * along - at).T).min())


# The page in use


def test_a_slider_past_the_critical_attention_breaks_the_consensus(browser):
    browser.visit("#u=0.46")
    assert "a neutral consensus." in status(browser)
    before = browser.run("Math.max(...lab.view.opinions.at(-1).map(Math.abs))")
    browser.run("document.querySelector('#slider-u').focus()")
    browser.press(*RIGHT, times=10)
    settle(browser)
    assert state(browser).u == pytest.approx(0.56)
    assert "The neutral consensus has broken. Dissensus" in status(browser)
    assert browser.run("Math.max(...lab.view.opinions.at(-1).map(Math.abs))") > 0.4 > before
    assert "u=0.56" in browser.run("location.hash")
    # and back
    browser.press(*LEFT, times=10)
    settle(browser)
    assert "a neutral consensus." in status(browser)
    assert "u=0.46" in browser.run("location.hash")


def test_the_address_has_the_whole_state(browser):
    fragment = "#u=1.2&d=0.9&a=0.5&b=0.25&T=25&n=37&graph=blocks&model=kuramoto&from=initial&sign=-1&seed=5&t=10"
    browser.visit(fragment)
    first = browser.run("[lab.view.state, [...lab.view.opinions.at(-1)], lab.view.time]")
    assert first[2] == 10
    address = browser.run("location.hash")
    browser.visit()
    assert browser.run("lab.view.state.model") == "opinions"
    browser.visit(address)
    assert browser.run("[lab.view.state, [...lab.view.opinions.at(-1)], lab.view.time]") == first
    assert browser.run("document.querySelector('#graph').value") == "blocks"
    assert browser.run("document.querySelector('#slider-n').value") == "37"


def test_a_dropped_graph_is_shown_and_shared(browser, tmp_path):
    file = tmp_path / "friends.csv"
    file.write_text(f'source,target,weight\nann,bob\n"bob",cat,-0.5\ncat,ann,2\ncat,{BAD.replace(",", "")}\n')
    browser.visit()
    browser.drop(file)
    browser.wait("lab.view.state.graph === 'own'")
    settle(browser)
    assert browser.run("lab.view.graph.names.slice(0, 3)") == ["ann", "bob", "cat"]
    assert browser.run("document.querySelector('#size').textContent") == "4 agents, 4 edges"
    assert browser.run("lab.view.graph.edges[1]") == [1, 2, -0.5]
    address = browser.run("location.hash")
    browser.visit(address)
    assert browser.run("lab.view.graph.names[3]") == BAD
    assert browser.run("document.title") == "Opinion laboratory"
    assert browser.run("document.querySelectorAll('img').length") == 0


def test_an_edge_list_in_the_address_is_the_one_that_was_given(browser):
    text = "# a comment\nx #1\ny #1\nu v\nv v\n\n#1 lost\nv u 3"
    browser.visit()
    browser.run("document.querySelector('#own').open = true")
    browser.run(f"document.querySelector('#edges').value = {json.dumps(text)}")
    browser.run("document.querySelector('#use').click()")
    settle(browser)
    graph = "[lab.view.graph.names, lab.view.graph.edges]"
    assert browser.run(graph) == [["x", "#1", "y", "u", "v"], [[0, 1, 1], [1, 2, 1], [3, 4, 3]]]
    browser.visit(browser.run("location.hash"))
    assert browser.run(graph) == [["x", "#1", "y", "u", "v"], [[0, 1, 1], [1, 2, 1], [3, 4, 3]]]


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("ann bob\nann\n", "Line 2 (“ann”) is no edge: write two names"),
        ("ann,bob,much", "the weight “much”: write a number"),
        ("# nothing", "write a line an edge"),
        ("\x00\x01\x02binary", "is no edge"),
        ("\n".join(f"a{k} b{k}" for k in range(600)), "more than 1000 agents"),
    ],
)
def test_a_broken_graph_leaves_the_page_as_it_was(browser, tmp_path, text, cure):
    file = tmp_path / "broken.txt"
    file.write_text(text)
    browser.visit("#u=0.6")
    browser.drop(file)
    browser.wait("!document.querySelector('#problem').hidden")
    assert cure in problem(browser)
    assert "broken.txt" in problem(browser)
    assert state(browser).graph == "karate"
    browser.run("document.querySelector('#problem button').click()")
    assert problem(browser) == ""


@pytest.mark.parametrize(
    ("fragment", "said"),
    [
        ("#u=NaN&d=-1&model=gpt&n=1e9", ["from 0 to 3", "from 0.1 to 3", "give opinions, consensus", "from 4 to 300"]),
        ("#%E0%A4%A", ["The address is damaged"]),
        ("#__proto__=1&constructor=2&u", ["means nothing here", "from 0 to 3"]),
        ("#graph=own&edges=nonsense", ["edge list in the address cannot be read. Line 1", "karate club"]),
        (f"#{BAD}=1&seed={BAD}", ["means nothing here", "a whole number"]),
    ],
)
def test_a_wild_address_is_explained(browser, fragment, said):
    browser.visit(fragment.replace(" ", "%20").replace("<", "%3C").replace(">", "%3E"))
    assert all(words in problem(browser) for words in said), problem(browser)
    assert "Dissensus: 16" in status(browser)  # the defaults
    assert browser.run("document.title") == "Opinion laboratory"


def test_opinions_evolve_at_sixty_frames_a_second(browser):
    browser.visit("#graph=random&n=300&u=0.9")
    browser.run("document.querySelector('#play').click()")
    browser.wait("lab.view.time > 2")
    costs = browser.run("""new Promise(done => {
      const costs = [];
      const next = () => (costs.push(lab.view.cost), costs.length < 60 ? requestAnimationFrame(next) : done(costs));
      requestAnimationFrame(next);
    })""")
    assert np.median(costs) < 8  # milliseconds, of the 16.7 that there are
    browser.run("document.querySelector('#play').click()")
    at = browser.run("lab.view.time")
    settle(browser)
    assert browser.run("lab.view.time") == at
    assert f"t={at:.2f}".rstrip("0").rstrip(".") in browser.run("location.hash")


@pytest.mark.parametrize("name", ["network", "opinions", "bifurcation", "energy", "rank"])
def test_downloads(browser, tmp_path, name):
    browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.visit("#model=opinions")
    for index, kind in enumerate(("svg", "png", "csv")):
        browser.run(f"document.querySelectorAll('#{name} .downloads button')[{index}].click()")
        file = tmp_path / f"{name}.{kind}"
        for _ in range(100):
            if file.is_file():
                break
            browser.run("new Promise(done => setTimeout(done, 50))")
    drawing = ElementTree.parse(tmp_path / f"{name}.svg")
    paths = list(drawing.iter("{http://www.w3.org/2000/svg}path"))
    assert len(paths) > 30 if name in ("network", "opinions") else len(paths) > 4
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.reader(io.StringIO((tmp_path / f"{name}.csv").read_text())))
    assert len({len(row) for row in rows}) == 1
    expected = {"network": 1 + 34, "opinions": 1 + 161, "energy": 1 + 5 * 161, "rank": 1 + 5 * 161}
    assert len(rows) == expected.get(name, len(rows))
    assert all(np.isfinite(float(cell)) for row in rows[1:] for cell in row[1:] if cell)


def test_log_axes_of_charts(browser):
    browser.visit()

    def texts(xs):
        chart = {"lines": [{"name": "a", "x": xs, "y": list(range(len(xs)))}], "xLog": True}
        script = f"new lab.Chart(document.querySelector('#energy .plot'), {json.dumps(chart)}).svg()"
        return {node.text for node in ElementTree.fromstring(browser.run(script)).iter() if node.tag.endswith("text")}

    assert {"1", "2", "4", "8", "16", "32", "64", "128"} <= texts([1, 2, 4, 8, 16, 32, 64, 128])
    assert {"10⁻¹²", "1"} <= texts([1e-12, 1])
    assert {"5", "10", "20", "50"} <= texts([3, 60])


def axe():
    """The rules of axe-core, as a Python package carries them; without the package itself, which needs others."""
    found = find_spec("axe_playwright_python")
    if found is None:
        pytest.skip("needs axe-core: pip install --no-deps axe-playwright-python")
    return (Path(found.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(browser, stored, scheme, width):
    rules = axe()
    browser.size(width, 900)
    browser.prefer(scheme)
    browser.visit("#u=oops", stored)  # with a message in sight
    browser.run(rules)
    found = browser.run("axe.run().then(found => found.violations)")
    serious = [
        (each["id"], [node["html"] for node in each["nodes"]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert browser.run("document.documentElement.scrollWidth - innerWidth") <= 0


def test_all_controls_are_reached_by_keyboard(browser):
    browser.visit("#u=oops")
    seen = []
    for _ in range(60):
        browser.press("Tab", 9)
        seen.append(browser.run("document.activeElement.id || document.activeElement.getAttribute('aria-label')"))
    order = ["graph", "seed", "redraw", "model", "slider-u", "slider-d", "slider-a", "slider-b", "from", "slider-T"]
    places = [seen.index(name) for name in [*order, "share", "reset", "play", "time"]]
    assert places == sorted(places)
    assert "Download bifurcation diagram as CSV" in seen


# Finished runs


RUNS = [
    {
        "dataset": "cora",
        "model": model,
        "label": f"split {split} seed 1",
        "metric": "accuracy",
        "test": 80.0 + split if depth < 64 else None,
        "paper": 83.19 if model == "bimp" else None,
        "depth": depth,
        "settings": {"model.name": model, "train.lr": 0.01 * split, BAD: BAD},
        "history": {"validation": [50.0, 60.0, 70.0], "loss": [2.0, 1.0, float("nan")]} if split == 1 else {},
    }
    for model in ("bimp", f"{BAD}gcn")
    for split in (1, 2)
    for depth in (2.0, 8.0, 64.0)
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return report.lab(tmp_path_factory.mktemp("stored") / "lab.html", RUNS)


def test_finished_runs_are_shown(browser, stored):
    browser.visit(path=stored)
    cells = (
        "[...document.querySelectorAll('#accuracy tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))"
    )
    rows = browser.run(cells)
    assert rows[0] == ["cora", "bimp", "accuracy", "81.50 ± 0.58 (4)", "83.19", "−1.69", "3", "2"]
    assert rows[1][1] == f"{BAD}gcn"
    assert "Test results over depth: cora" in browser.run("document.querySelector('#depth-0').innerText")
    assert browser.run("document.querySelector('#depth-0 canvas').height") > 200
    browser.run("document.querySelectorAll('#accuracy thead button')[1].click()")
    assert browser.run(cells.format("#accuracy"))[0][1] == f"{BAD}gcn"
    settings = (
        "[...document.querySelectorAll('#compare tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))"
    )
    assert browser.run(settings) == []  # the first two differ in depth alone
    assert browser.run("document.querySelector('#same').textContent") == "All settings are equal."
    browser.run("(box => { box.value = 3; box.dispatchEvent(new Event('change')) })(document.querySelector('#run-B'))")
    assert browser.run(settings) == [["train.lr", "0.01", "0.02"]]
    browser.run("document.querySelector('#different').click()")
    assert [BAD, BAD, BAD] in browser.run(settings)
    legend = "[...document.querySelectorAll('#curves .canvas')].map(each => each.getAttribute('aria-label'))"
    assert browser.run(legend) == [
        f"Training curve of both runs: {name} against epoch" for name in ("validation", "loss")
    ]
    assert browser.run("document.querySelector('#curves').hidden") is False
    assert browser.run("document.title") == "Opinion laboratory"
    assert browser.run("document.querySelectorAll('img').length") == 0


def test_an_empty_store_says_what_to_do(tmp_path):
    assert "The store has no finished run yet" in report.lab(tmp_path / "lab.html", []).read_text()
    assert "Finished runs" not in report.lab(tmp_path / "lab.html").read_text()
