"""Colours of pages and of figures for print.

The eight series colours keep at least 3:1 contrast to their background and stay apart for readers with protanopia,
deuteranopia or tritanopia; the tests measure both.
"""

LIGHT = {
    "paper": "#ffffff",
    "wash": "#f6f7f8",
    "ink": "#1c2127",
    "muted": "#5b6570",
    "faint": "#c3c9d0",
    "grid": "#e8ebee",
    "accent": "#0b57a4",
    "best": "#e9f3ec",
    "s0": "#0058b0",
    "s1": "#c93b00",
    "s2": "#209e71",
    "s3": "#c3559e",
    "s4": "#779d4a",
    "s5": "#4681ff",
    "s6": "#4e4e5e",
    "s7": "#8b002a",
}
DARK = {
    "paper": "#15181c",
    "wash": "#1c2025",
    "ink": "#e6e9ec",
    "muted": "#a0a9b3",
    "faint": "#444c55",
    "grid": "#282d33",
    "accent": "#7db7f2",
    "best": "#1d3226",
    "s0": "#449ce9",
    "s1": "#ff7b50",
    "s2": "#50f0b0",
    "s3": "#9c6e94",
    "s4": "#e5d52d",
    "s5": "#a2e5ff",
    "s6": "#bbb4b6",
    "s7": "#b86972",
}


def series_colours(theme: dict[str, str]) -> list[str]:
    """The eight colours of the series, in order."""
    return [theme[f"s{index}"] for index in range(8)]


def variables(theme: dict[str, str]) -> str:
    """The theme as CSS custom properties."""
    return "".join(f"--{name}:{colour};" for name, colour in theme.items())


def stylesheet_colours() -> str:
    """CSS with both themes: dark if the reader's system or the page's switch asks for it, otherwise light."""
    light, dark = f"color-scheme:light;{variables(LIGHT)}", f"color-scheme:dark;{variables(DARK)}"
    return (
        f":root{{{light}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f":root[data-theme=light]{{{light}}}:root[data-theme=dark]{{{dark}}}"
    )
