import json
import re
import sys
from html.parser import HTMLParser
from math import nan

import pytest

from browser import Browser
from dissensus.errors import InputError
from dissensus.report import Curves, Page, Series, Table, Value
from dissensus.report._theme import DARK, LIGHT

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
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttp", document)
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


def test_charts_are_data_for_the_script(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # which is for print alone
    document = page().html()
    found = re.search(r'<script type="application/json" id="s2-two-1-chart">(.+?)</script>', document)
    chart = json.loads(found[1])
    assert 'data-chart="s2-two-1-chart"' in document
    assert chart["describe"] == "Depth: accuracy over steps; bimp, gcn"
    assert (chart["xLog"], chart["yLog"], chart["xLabel"], chart["yLabel"]) == (True, False, "steps", "accuracy")
    bimp, gcn = chart["lines"]
    assert (bimp["low"], bimp["high"]) == ([79, 81, 82], [81, 83, 84])
    assert (gcn["y"], gcn["low"]) == ([81, 70, None], None)  # JSON has no NaN


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
    kinds = [value for name, value in reader.attributes if name == "type"]
    assert (reader.tags.count("script"), kinds) == (2, ["application/json"])  # ours, and a chart's data
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    words = "".join(reader.words)
    assert words.count("</script><script>") >= 14


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens a page in the browser at a width; its console must stay free of errors."""

    def open_at(width, shown):
        browser.problems.clear()
        browser.size(width, 800)
        browser.prefer("light")
        browser.open(shown.write(tmp_path / "report.html"))
        return browser

    yield open_at
    assert not browser.problems


ORDER = "[...document.querySelectorAll('#s1-one-1 tbody tr')].map(row => row.cells[0].textContent)"


def test_browser_sorts_tables_by_number(show):
    browser = show(1000, page())
    original = ["gcn", "bimp", "mlp", "gat"]
    assert browser.run(ORDER) == original

    def after(column):
        browser.run(f"document.querySelectorAll('#s1-one-1 thead button')[{column}].click()")
        return browser.run(ORDER)

    assert after(1) == ["bimp", "gat", "gcn", "mlp"]
    assert browser.run("document.querySelectorAll('#s1-one-1 th')[1].getAttribute('aria-sort')") == "descending"
    assert after(1) == ["gcn", "gat", "bimp", "mlp"]
    assert after(1) == original
    assert after(2) == ["gat", "mlp", "bimp", "gcn"]


# The colours of a canvas, each as one number, and how many of its pixels have them.
PIXELS = """(() => {
  const canvas = document.querySelector('.plot canvas');
  const data = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  const counts = {};
  for (const pixel of data) counts[pixel] = (counts[pixel] || 0) + 1;
  return counts;
})()"""


def painted(browser, colour):
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return browser.run(PIXELS).get(str(0xFF000000 | blue << 16 | green << 8 | red), 0)


def test_browser_draws_charts_in_the_colours_of_the_theme(show):
    browser = show(1000, page())
    box = "document.querySelector('.plot .canvas')"
    assert browser.run(f"[{box}.getAttribute('role'), {box}.getAttribute('aria-label')]") == [
        "img",
        "Depth: accuracy over steps; bimp, gcn",
    ]
    assert browser.run("[...document.querySelectorAll('.legend li')].map(item => item.textContent)") == ["bimp", "gcn"]
    for name in ("s0", "s1"):
        assert painted(browser, LIGHT[name]) > 50
        assert painted(browser, DARK[name]) == 0
    browser.run("document.querySelector('.theme').click()")
    browser.wait("document.documentElement.dataset.theme === 'dark'")
    browser.run("new Promise(requestAnimationFrame)")
    for name in ("s0", "s1"):
        assert painted(browser, DARK[name]) > 50
        assert painted(browser, LIGHT[name]) == 0


@pytest.mark.parametrize("width", [1000, 390])
def test_browser_fits_the_page_to_the_screen(show, width):
    browser = show(width, page())
    assert browser.run("document.documentElement.scrollWidth - innerWidth") <= 0
    assert browser.run("document.querySelector('.plot canvas').getBoundingClientRect().width") <= width


def test_browser_gives_a_broad_table_the_empty_margin(show):
    widths = "[...document.querySelectorAll('main, .box')].map(each => each.getBoundingClientRect().width)"
    text, *boxes = show(1400, page()).run(widths)
    assert (text, max(boxes)) == (1080, pytest.approx(1200, abs=1))
    text, *boxes = show(1000, page()).run(widths)
    assert text == max(boxes)


def test_browser_runs_no_text(show):
    shown = hostile()
    bare = shown.html()
    # The page's own policy would stop such a script as well; without it only escaping stands against it.
    shown.html = lambda: re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", bare)
    browser = show(390, shown)
    browser.wait("document.querySelectorAll('.legend li').length")
    assert browser.run("document.title").startswith("</script>")
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.querySelector('.legend li').textContent").startswith("</script>")


def test_browser_prints_on_white(show):
    browser = show(1000, page())
    browser.prefer("dark")
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
