"""What the pages of automata show: strings that say something, blocks that do something, arrows told apart."""

import re

import numpy as np

import thereexists as te
from tests.automata.machines import SMALL
from thereexists.reports import report
from thereexists.reports.automaton_pictures import lively_string, machine_picture
from thereexists.reports.explore import open_viewer

DATE = te.automata.regex(r"\d\d-(0[1-9]|1[0-2])", "0123456789-")


def test_examples_live_as_long_as_they_can():
    for name, machine in {**SMALL, "date": DATE}.items():
        for seed in range(5):
            word = lively_string(machine, 16, seed)
            states = machine.states(word)
            assert 1 <= len(word) <= 16
            assert machine.dead is None or machine.dead not in states, name
    assert DATE.accepts(lively_string(DATE, 16, 0))  # a finite language: it ends where every symbol is dead
    nothing = te.automata.Automaton(
        ("a",), np.array([[0], [0]]), 0, np.array([False, True]), np.full((2, 1), -1), (), ("s", "t"), 2
    )
    assert lively_string(nothing, 4, 0) == ["a"]


def test_the_tree_shows_the_blocks_that_are_needed(machines):
    """16 symbols of a network for 40: after four blocks every prefix is whole, and two more change nothing."""
    page = str(report(machines["doubling"]))
    assert "block 4</text>" in page
    assert "block 5</text>" not in page


def test_the_start_can_be_told_from_its_loop():
    """The arrow from nowhere comes from the left; the loop of the start, with its label, stands above."""
    picture = str(machine_picture(SMALL["mod7"], "mod7"))
    arrow = re.search(r'class="ink"[^>]*d="M([\d.]+),([\d.]+)H([\d.]+)"', picture)
    labels = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"', picture)
    assert arrow is not None
    left, y, right = map(float, arrow.groups())
    assert not [at for at in labels if left - 5 < float(at[0]) < right and abs(float(at[1]) - y) < 12]
    assert len({(round(float(x)), round(float(y))) for x, y in labels}) == len(labels)


def test_the_pages_of_a_network_that_counts(machines):
    page = str(report(machines["counting"]))
    assert "What is counted" in page
    assert "3 counters, two blocks at every length" in page
    viewer = open_viewer(machines["counting"])
    assert viewer.about()["facts"]["counts of"] == "1; 2; 3"
    seen = viewer.run({"words": "1230"})
    assert seen["same"]
    assert [frame["layer"] for frame in seen["frames"]] == [0, 1, 2, 3]  # the output is a stop of its own
    assert seen["frames"][2]["lanes"][4]["text"].endswith("→ state 6")
