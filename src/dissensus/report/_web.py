"""Documents that need nothing but themselves: script, style and data inside, no network, no other file."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from dissensus.report._theme import stylesheet_colours

# Theme, charts and tables, which every document has.
_SHARED = ("web/svg.js", "web/theme.js", "web/chart.js", "web/table.js")


def document(title: str, body: str, scripts: Sequence[str], styles: Sequence[str] = ()) -> str:
    """A whole HTML document.

    Args:
        title: as plain text.
        body: as HTML.
        scripts: files of this room, after the shared ones; all are one script, in which their names are common.
        styles: files of this room, after the shared ones.
    """
    # uPlot is a whole of its own; ours share one scope, which nothing outside can see.
    ours = "\n".join(text_of(name) for name in (*_SHARED, *scripts))
    script = f'{text_of("web/uplot.js")}\n"use strict";\n(() => {{\n{ours}\n}})();\n'
    style = stylesheet_colours() + "\n".join(text_of(name) for name in ("web/uplot.css", "web/page.css", *styles))
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # The policy forbids every request, and every script but ours, even if a text were ever left unescaped.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n<script>{script}</script>\n</head>\n<body>\n"
        f'<a class="skip" href="#content">Skip to content</a>\n{body}</body>\n</html>\n'
    )


def embedded(name: str, value: Any) -> str:
    """A value as JSON in a document, where the script finds it by the id ``name``: data, whatever texts it has."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":  # as escapes, they cannot end the element
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return f'<script type="application/json" id="{escape(name, quote=True)}">{text}</script>'


def text_of(name: str) -> str:
    """A file of this room."""
    return (files(__package__) / name).read_text(encoding="utf-8")
