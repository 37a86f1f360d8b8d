"""Symmetric states: opinions that stay equal or opposite to each other."""

from __future__ import annotations

import numpy as np

from dissensus.dynamics._flow import Array, Flow

# Values of states that differ by less, relative to the largest, are equal; entries of matrices, absolutely.
_DIGITS_OF_STATES, _DIGITS_OF_ENTRIES = 6, 9


def invariant_subspace(flow: Flow, *states: Array) -> Array | None:
    """The smallest space of states that the flow keeps in itself, among those that equal or opposite opinions span.

    Two opinions belong to one class where they are equal in all given states (or opposite in all of them, if the flow
    is odd and without input), and hear the same from every class: a balanced colouring of the graph, by refinement
    (Golubitsky and Stewart, Nonlinear dynamics of networks: the groupoid formalism, 2006).

    Returns:
        An orthonormal basis, [n o, classes]; None where every opinion is a class of its own.
    """
    marks = np.stack([x.ravel() / max(float(np.abs(x).max()), 1e-300) for x in states], axis=1)
    marks = np.round(marks, _DIGITS_OF_STATES)
    given = [v.ravel() for v in (flow.damping, flow.attention, flow.self_reinforcement, flow.input)]
    mirrored = flow.odd and not flow.input.any()
    signs = _first_sign(marks) if mirrored else np.ones(flow.size)
    labels, count = _classes(np.column_stack([marks * signs[:, None], *given, signs == 0]))
    while True:
        columns = np.zeros((flow.size, count))
        columns[np.arange(flow.size), labels] = signs
        heard = np.round(flow.matrix @ columns, _DIGITS_OF_ENTRIES) + 0.0
        # Neutral opinions that hear something leave neutrality.
        signs = np.where(signs == 0.0, _first_sign(heard), signs)
        labels, more = _classes(np.column_stack([labels, heard * signs[:, None], signs == 0]))
        if more == count:
            break
        count = more
    columns = columns[:, columns.any(axis=0)]
    if columns.shape[1] in (0, flow.size):
        return None
    return columns / np.linalg.norm(columns, axis=0)


def _first_sign(rows: Array) -> Array:
    """The sign of the first entry of each row that is not zero; 0 of a zero row."""
    return np.sign(rows[np.arange(len(rows)), (rows != 0).argmax(axis=1)])


def _classes(rows: Array) -> tuple[Array, int]:
    """Equal rows by number, and how many numbers there are."""
    labels = np.unique(rows + 0.0, axis=0, return_inverse=True)[1].ravel()
    return labels, int(labels.max()) + 1
