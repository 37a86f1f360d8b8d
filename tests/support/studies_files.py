"""Reading what a study wrote."""

import csv


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
