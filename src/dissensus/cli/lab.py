"""Write the laboratory, one HTML file, and open it: opinions on a graph of your choice, simulated in the browser.

    dissensus lab
    dissensus lab --store runs.db -o lab.html

Attention, damping, self-reinforcement, input, coupling and depth are sliders. Beside the network are opinions against
time, the bifurcation diagram, and Dirichlet energy and effective rank of all models. The file needs no network and no
server, and its address has the whole state, so that a view can be shared as a link.

--store adds the finished runs of a store: results beside the paper's and over depth, training curves, and the settings
of two runs side by side.
"""

import argparse
import webbrowser

from dissensus.cli._common import print_json, say


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", default="lab.html", metavar="FILE", help="the page")
    parser.add_argument("--store", metavar="FILE", help="show the finished runs of this store as well")
    parser.add_argument("--no-open", action="store_true", help="write the page without opening it in a browser")


def run(args: argparse.Namespace) -> int:
    from dissensus import studies

    page, opened = studies.lab(args.output, args.store), False
    try:
        opened = not args.no_open and webbrowser.open(page.resolve().as_uri())
    except webbrowser.Error as error:
        say(f"no browser could be started ({error})")
    text = f"The laboratory: {page}" + ("" if opened else "\nOpen it in a browser.")
    print_json({"page": str(page), "opened": opened}) if args.json else print(text)
    return 0
