"""Self-contained HTML documents: scripts, styles and data are part of the file, and nothing is loaded."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from dissensus.report._theme import stylesheet_colours

# Scripts of every document: theme, charts and tables.
_SHARED = ("web/svg.js", "web/theme.js", "web/chart.js", "web/table.js")


def document(title: str, body: str, scripts: Sequence[str], styles: Sequence[str] = ()) -> str:
    """A whole HTML document.

    Args:
        title: as plain text.
        body: as HTML.
        scripts: JavaScript files of this package, which follow the shared ones and have one scope with them.
        styles: CSS files of this package, which follow the shared ones.
    """
    # uPlot is a separate script. Ours share one scope, which is not visible outside.
    ours = "\n".join(text_of(name) for name in (*_SHARED, *scripts))
    script = f'{text_of("web/uplot.js")}\n"use strict";\n(() => {{\n{ours}\n}})();\n'
    style = stylesheet_colours() + "\n".join(text_of(name) for name in ("web/uplot.css", "web/page.css", *styles))
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # The policy forbids every request and every other script, even if a text were not escaped by mistake.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n<script>{script}</script>\n</head>\n<body>\n"
        f'<a class="skip" href="#content">Skip to content</a>\n{body}</body>\n</html>\n'
    )


def embedded(name: str, value: Any) -> str:
    """A value as a JSON element of a document, which scripts find by its id ``name``. Its texts are not HTML."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":  # escaped, so that no text can end the element
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return f'<script type="application/json" id="{escape(name, quote=True)}">{text}</script>'


def text_of(name: str) -> str:
    """The content of a file of this package."""
    return (files(__package__) / name).read_text(encoding="utf-8")
