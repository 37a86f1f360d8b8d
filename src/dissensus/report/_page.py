"""Reports as self-contained HTML pages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dissensus.errors import InputError
from dissensus.report._curves import Curves
from dissensus.report._html import curves_html, prose, table_html, text
from dissensus.report._provenance import provenance
from dissensus.report._table import Table
from dissensus.report._web import document

Item = Table | Curves


@dataclass
class Page:
    """A report: a title, an introduction, and sections of text, tables and charts.

    Texts are plain; a blank line starts a paragraph, and `` `code` `` is shown as code. ``facts`` is the provenance
    shown at the end, by default that of the current process (see :meth:`provenance`).
    """

    title: str
    intro: str = ""
    facts: Mapping[str, str] | None = None
    _sections: list["_Section"] = field(default_factory=list, repr=False)

    provenance = staticmethod(provenance)

    def add(self, section_title: str, *items: Item, text: str = "", commands: Sequence[str] = ()) -> "Page":
        """Append a section and return the page, so that calls can be chained.

        Args:
            section_title: heading of the section.
            items: its tables and charts.
            text: its introduction.
            commands: command lines that produce it, shown below the text in a collapsed element.
        """
        for item in items:
            if not isinstance(item, Item):
                raise InputError(f"a section holds report.Table and report.Curves, not {type(item).__name__}")
        self._sections.append(_Section(section_title, text, tuple(commands), items))
        return self

    def html(self) -> str:
        """The whole document."""
        names = _anchors([section.title for section in self._sections])
        body = "".join(section.html(name) for name, section in zip(names, self._sections, strict=True))
        return document(
            self.title,
            f"<header><h1>{text(self.title)}</h1>{prose(self.intro)}</header>\n{self._contents(names)}"
            f'<main id="content">{body}</main>\n{_footer(self.facts or provenance())}\n',
            ["web/page.js"],
        )

    def write(self, path: str | Path) -> Path:
        """Write the document to ``path``, whose folder is created if missing, and return the path."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.html(), encoding="utf-8")
        return target

    def _contents(self, names: list[str]) -> str:
        if len(names) < 2:
            return ""
        links = "".join(
            f'<li><a href="#{name}">{text(section.title)}</a></li>'
            for name, section in zip(names, self._sections, strict=True)
        )
        return f'<nav aria-label="Contents"><ol>{links}</ol></nav>\n'


class _Section(NamedTuple):
    title: str
    words: str
    commands: tuple[str, ...]
    items: tuple[Item, ...]

    def html(self, name: str) -> str:
        shown = "".join(
            table_html(item, f"{name}-{index}") if isinstance(item, Table) else curves_html(item, f"{name}-{index}")
            for index, item in enumerate(self.items, start=1)
        )
        heading = f'<h2 id="{name}-title">{text(self.title)}</h2>'
        words = prose(self.words) + self._commands_html()
        return f'<section id="{name}" aria-labelledby="{name}-title">{heading}{words}{shown}</section>\n'

    def _commands_html(self) -> str:
        if not self.commands:
            return ""
        title = "The command" if len(self.commands) == 1 else f"The {len(self.commands)} commands"
        lines = "\n".join(map(text, self.commands))
        return f"<details><summary>{title} that made this</summary><pre>{lines}</pre></details>"


def _footer(facts: Mapping[str, str]) -> str:
    pairs = "".join(f"<div><dt>{text(name)}</dt><dd>{text(str(fact))}</dd></div>" for name, fact in facts.items())
    return f'<footer aria-label="Provenance"><h2>Provenance</h2><dl>{pairs}</dl></footer>'


def _anchors(titles: list[str]) -> list[str]:
    """A readable URL fragment for each title, unique by the number of its section."""
    slugs = (re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") for title in titles)
    return [f"s{place}-{slug}".rstrip("-") for place, slug in enumerate(slugs, start=1)]
