import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from math import nan

import pytest

from dissensus.errors import InputError
from dissensus.report import Curves, Page, Series, Table, Value

BAD = """</script><script>document.title="owned"</script><img src=x onerror="document.title='owned'">'"&"""
VOID = {"meta", "img", "br", "link", "input"}


class Reader(HTMLParser):
    """Collects elements, attributes and texts, and checks that elements are nested properly."""

    def __init__(self, document):
        super().__init__()
        self.tags, self.attributes, self.words, self.open = [], [], [], []
        self.feed(document)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    def values(self, name):
        return [value for key, value in self.attributes if key == name]


def page():
    table = Table(
        ["model", "Cora", "note"],
        [
            ["gcn", Value(9.5, 1.0, 3, paper=9.0), "b10"],
            ["bimp", Value(83.2, 0.5, 10), "b9"],
            ["mlp", "out of memory", "b1"],
            ["gat", 81.0, None],
        ],
        caption="Accuracy",
        best={"Cora": "max"},
    )
    many = Table(["model", *map(str, range(12))], [["bimp", *[Value(83.2, 0.5, 10, paper=80.0)] * 12]])
    curves = Curves(
        [
            Series("bimp", [1, 2, 4], [80.0, 82.0, 83.0], [79, 81, 82], [81, 83, 84]),
            Series("gcn", [1, 2, 4], [81, 70, nan]),
        ],
        x_label="steps",
        y_label="accuracy",
        title="Depth",
        x_log=True,
    )
    return Page("Report", "First.\n\nRun `dissensus demo`.").add("One", table, many, text="Words.").add("Two", curves)


def test_the_commands_that_made_a_section_are_folded_away():
    document = Page("Report").add("One", commands=["make a <b>", "make c"]).add("Two", commands=["make d"]).html()
    assert "<summary>The 2 commands that made this</summary><pre>make a &lt;b&gt;\nmake c</pre>" in document
    assert "<summary>The command that made this</summary><pre>make d</pre>" in document
    assert "that made this" not in page().html()
    assert not Reader(document).open


def test_page_is_well_formed_and_needs_no_other_file(tmp_path):
    path = page().write(tmp_path / "new" / "report.html")
    document = path.read_text(encoding="utf-8")
    reader = Reader(document)
    assert reader.tags.count("h1") == 1
    assert not {"link", "img", "iframe", "object"} & set(reader.tags)
    assert not reader.values("src")
    assert all(link.startswith("#") for link in reader.values("href"))
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp", document)
    assert "default-src 'none'" in reader.values("content")[0]
    assert len(reader.values("id")) == len(set(reader.values("id")))
    assert "<p>First.</p><p>Run <code>dissensus demo</code>.</p>" in document


def test_tables_of_many_means_are_set_smaller():
    assert Reader(page().html()).values("class").count("table dense") == 1


def test_contents_only_where_there_are_several_sections():
    reader = Reader(page().html())
    assert {"#s1-one", "#s2-two"} <= set(reader.values("href"))
    assert {"s1-one", "s2-two"} <= set(reader.values("id"))
    assert "nav" not in Reader(Page("t").add("One").html()).tags


def test_same_titles_have_own_anchors():
    identifiers = Reader(Page("t").add("A").add("A").add("???").html()).values("id")
    assert len(identifiers) == len(set(identifiers))


def test_footer_tells_the_provenance():
    words = " ".join(Reader(page().html()).words)
    assert all(fact in words for fact in ("Provenance", "dissensus", "torch", "cpu", "command"))
    stored = Page("t", facts={"date": "2001-02-03", "cpu": "abacus"}).html()
    assert "<dd>abacus</dd>" in stored
    assert "torch" not in " ".join(Reader(stored).words)


def test_chart_data_survives_as_json():
    block = re.search(r'<script type="application/json">(.*?)</script>', page().html())
    data = json.loads(block[1])
    assert data["names"] == ["bimp", "gcn"]
    assert data["lines"][1] == {"series": 1, "x": [1, 2, 4], "y": [81, 70, None]}


def test_a_long_chart_has_a_short_data_table():
    document = Page("t").add("s", Curves([Series("a", range(1001), range(1001))])).html()
    assert "25 of 1001 points." in document


def test_data_table_keeps_every_branch():
    up, down = Series("stable", [0, 1], [0, 1]), Series("stable", [0, 1], [0, -1])
    document = Page("t").add("s", Curves([up, down, Series("other", [1], [0.5])])).html()
    assert "1.000 / −1.000" in document


def test_sections_refuse_what_they_cannot_show():
    with pytest.raises(InputError, match="not str"):
        Page("t").add("s", "text")


def hostile():
    table = Table([BAD, "v"], [[BAD, 1.0], ["x", 2.0]], caption=BAD, note=BAD, best={"v": "max"})
    line = Series(BAD, [1, 2], [1, 2])
    curves = Curves([line, Series("b", [1, 2], [2, 3])], BAD, BAD, BAD, caption=BAD)
    return Page(BAD, BAD, facts={BAD: BAD}).add(BAD, table, curves, text=BAD).add(f"`{BAD}`")


def test_every_text_is_escaped():
    reader = Reader(hostile().html())
    assert "img" not in reader.tags
    assert reader.tags.count("script") == 2  # ours, and the chart's data
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    words = "".join(reader.words)
    assert words.count("</script><script>") >= 14


PROBE = """
addEventListener("load", () => {
  const all = (query) => [...document.querySelectorAll(query)];
  const order = () => all("#s1-one-1 tbody tr").map((row) => row.cells[0].textContent);
  const [model, cora, note] = all("#s1-one-1 thead button");
  const out = { start: order() };
  const click = (name, button) => { button.click(); out[name] = order(); };
  click("best first", cora);
  out.sort = cora.closest("th").getAttribute("aria-sort");
  click("worst first", cora);
  click("back", cora);
  click("text", note);
  const plot = document.querySelector(".plot");
  const key = (key) => plot.dispatchEvent(new KeyboardEvent("keydown", { key }));
  const tip = () => plot.querySelector(".tip").textContent;
  key("End"); out.end = tip();
  key("ArrowLeft"); out.left = tip();
  const legend = all(".legend button")[0];
  legend.click();
  out.pressed = legend.getAttribute("aria-pressed");
  out.hidden = all('.series[data-series="0"]').every((part) => getComputedStyle(part).display === "none");
  key("Home"); out.without = tip();
  key("Escape"); out.escaped = tip();
  const box = plot.getBoundingClientRect();
  plot.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + 0.5 * box.width, clientY: box.top + 9 }));
  out.hover = tip();
  const paper = () => getComputedStyle(document.body).backgroundColor;
  const before = paper();
  all(".theme")[0].click();
  out.themes = [before, paper()];
  out.overflow = document.documentElement.scrollWidth - innerWidth;
  out.width = innerWidth;
  const widths = (query) => all(query).map((each) => each.getBoundingClientRect().width);
  out.boxes = [...widths("main"), Math.max(...widths(".box"))];
  out.shown = all(".plot > svg").filter((svg) => svg.getBoundingClientRect().width > 0).map((svg) => svg.classList[0]);
  out.title = document.title;
  parent.postMessage(out, "*");
});
"""
FRAMES = """<!doctype html><body><!-- static --><iframe src="wide.html" style="width:1000px;height:800px"></iframe>
<iframe src="phone.html" style="width:390px;height:800px"></iframe>
<iframe src="broad.html" style="width:1400px;height:800px"></iframe>
<iframe src="hostile.html" style="width:390px;height:800px"></iframe><pre id="out"></pre><script>
const found = [];
addEventListener("message", (event) => {
  found.push(event.data);
  if (found.length === 4) document.querySelector("#out").textContent = JSON.stringify(found);
});
</script>"""
HOSTILE_PROBE = (
    """addEventListener("load", () => setTimeout(() => parent.postMessage({ hostile: document.title }, "*"), 50));"""
)


def with_probe(document, probe):
    # The page's own policy would, rightly, refuse the probe; without it only escaping stands against the hostile texts.
    bare, count = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", document)
    assert count == 1
    return bare.replace("</body>", f"<script>{probe}</script></body>")


def dump(chromium, path, profile):
    quiet = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --disable-dev-shm-usage --virtual-time-budget=4000"
    )
    command = [chromium, *quiet.split(), f"--user-data-dir={profile}", "--dump-dom", path.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    if "<!-- static -->" not in shown:
        pytest.skip(f"{chromium} cannot show a file here (some packages of it may not read temporary folders)")
    return shown


@pytest.fixture(scope="module")
def chromium():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("needs chromium, chromium-browser or google-chrome on PATH")
    return found


@pytest.fixture(scope="module")
def probed(chromium, tmp_path_factory):
    """What the page did in a browser: at 1400, 1000 and 390 pixels, and with hostile texts."""
    folder = tmp_path_factory.mktemp("browser")
    for name, document, probe in (
        ("wide", page(), PROBE),
        ("phone", page(), PROBE),
        ("broad", page(), PROBE),
        ("hostile", hostile(), HOSTILE_PROBE),
    ):
        (folder / f"{name}.html").write_text(with_probe(document.html(), probe), encoding="utf-8")
    (folder / "frames.html").write_text(FRAMES, encoding="utf-8")
    shown = dump(chromium, folder / "frames.html", folder / "profile")
    block = re.search(r'<pre id="out">(.+?)</pre>', shown)
    assert block, shown[-2000:]
    results = json.loads(block[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    return {("hostile" if "hostile" in each else each["width"]): each for each in results}


@pytest.mark.parametrize("width", [1000, 390])
def test_browser_sorts_tables_by_number(probed, width):
    out = probed[width]
    assert out["start"] == out["back"] == ["gcn", "bimp", "mlp", "gat"]
    assert out["best first"] == ["bimp", "gat", "gcn", "mlp"]
    assert out["sort"] == "descending"
    assert out["worst first"] == ["gcn", "gat", "bimp", "mlp"]
    assert out["text"] == ["gat", "mlp", "bimp", "gcn"]


@pytest.mark.parametrize("width", [1000, 390])
def test_browser_reads_charts_by_key_and_pointer_and_hides_series(probed, width):
    out = probed[width]
    assert out["end"] == "steps 4bimp83 (82 to 84)"
    assert out["left"] == "steps 2bimp82 (81 to 83)gcn70"
    assert out["pressed"] == "false"
    assert out["hidden"]
    assert out["without"] == "steps 1gcn81"
    assert out["escaped"] == ""
    assert out["hover"] == "steps 2gcn70"


def test_browser_switches_colours(probed):
    assert len(set(probed[1000]["themes"])) == 2


@pytest.mark.parametrize(("width", "drawing"), [(1000, "wide"), (390, "narrow")])
def test_browser_fits_the_page_to_the_screen(probed, width, drawing):
    assert probed[width]["overflow"] <= 0
    assert probed[width]["shown"] == [drawing]


def test_browser_gives_a_broad_table_the_empty_margin(probed):
    text, table = probed[1400]["boxes"]
    assert (text, table) == (1080, pytest.approx(1200, abs=1))
    assert probed[1400]["overflow"] <= 0
    assert probed[1000]["boxes"][0] == probed[1000]["boxes"][1]


def test_browser_runs_no_text(probed):
    assert probed["hostile"]["hostile"].startswith("</script>")


def test_browser_accepts_the_policy_of_the_page(chromium, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page().html().replace("</body>", "<!-- static --></body>"), encoding="utf-8")
    shown = dump(chromium, path, tmp_path / "profile")
    assert 'class="theme"' in shown  # made by the page's script, so its digest is right
