"""A record states what defines its operations; slopes, ranges, errors follow, and no file can state them."""

import numpy as np
import pytest

import thereexists as te
from tests.hostile import forge_program
from thereexists import program as P
from thereexists.certificates.program_settings import check_settings
from thereexists.constructions.program.saving import from_record, to_record
from thereexists.core.errors import BadWitnessFile, CannotBuild

X = np.random.default_rng(0).random((200, 2, 1))


def hill(t):
    return 4 * (t - 0.5) ** 2


def own_function(x):
    return P.apply(hill, x, epsilon=0.1, curvature=8.0)


FORGED = {
    "the error of a spline": (own_function, "apply", {"own": 0.0, "slope": 0.0}),
    "the error of a known spline": (lambda x: P.apply(np.sin, x, epsilon=0.1), "apply", {"curvature": 0.0}),
    "the range of lines": (lambda x: P.interp(x, [0, 1], [0, 9]), "interp", {"range": [0.0, 0.1], "slope": 0.0}),
    "the error of a product": (lambda x: P.multiply(x, x, epsilon=0.1), "multiply", {"own": 0.0}),
    "the sizes of factors": (lambda x: P.multiply(x, x, epsilon=0.1), "multiply", {"size_a": 0.0, "size_b": 0.0}),
    "the range of a product": (lambda x: P.multiply(x, x, epsilon=0.1), "multiply", {"range": [0.0, 0.0]}),
    "the sizes of logits": (lambda x: P.attend(x, x, x), "attend", {"sum_q": 0.0, "sum_k": 0.0}),
    "the spread of values": (lambda x: P.attend(x, x, x), "attend", {"spread": 0.0, "range": [0.0, 0.0]}),
    "the error of a soft maximum": (lambda x: P.soft_largest(x, sharpness=2.0), "soft_largest", {"own": 0.0}),
    "a digest in other words": (own_function, "apply", {"source_sha256": "that of numpy.sin"}),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORGED)
def test_a_stated_figure_is_refused(tmp_path, name):
    make, operation, figures = FORGED[name]
    te.build(make(P.tokens(2)), dtypes=("float64",)).save(tmp_path / "w")

    def edit(record):
        next(node for node in record["program"]["nodes"] if node["operation"] == operation)["settings"].update(figures)

    forge_program(tmp_path / "w", edit)
    assert not te.verify(tmp_path / "w").holds
    with pytest.raises(BadWitnessFile, match=operation):
        te.certify(tmp_path / "w")


def shorter(key, part=0.5):
    """Knots that end before the argument does; what follows from them must say so."""

    def change(settings):
        kept = max(2, int(len(settings[key]) * part))
        settings[key] = settings[key][:kept]
        if key == "knots":
            settings["values"] = settings["values"][:kept]

    return change


REDEFINED = {
    "knots that end early": (lambda x: P.apply(np.sin, 3 * x, epsilon=0.01), "apply", shorter("knots")),
    "other values": (lambda x: P.apply(np.cos, x, epsilon=0.01), "apply", lambda s: s["values"].reverse()),
    "squares that end early": (lambda x: P.multiply(3 * x, 1 + x, epsilon=0.01), "multiply", shorter("plus")),
    "differences that end early": (lambda x: P.multiply(3 * x, 1 - x, epsilon=0.01), "multiply", shorter("minus")),
    "knots far apart": (lambda x: P.multiply(x, x, epsilon=0.01), "multiply", lambda s: s.update(plus=[0.0, 4.0])),
    "a bottom within": (lambda x: P.where([1.0, 0.0], x, 1 - x), "where", lambda s: s.update(bottom=0.5)),
    "a bottom above": (lambda x: P.where(x, x, 1 - x), "where", lambda s: s.update(bottom=3.0)),
    "too low a gate": (lambda x: P.where([1.0, 0.0], x, 1 - x), "where", lambda s: s.update(height=0.25)),
    "a flag beyond 1": (lambda x: P.where(P.clip(9 * x, 0, 1), x, 1 - x), "clip", lambda s: s.update(high=9.0)),
    "a scale below 0": (lambda x: P.mean(P.apply(np.sin, x, epsilon=0.1)), "mean", lambda s: s.update(scale=-3)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", REDEFINED)
def test_what_follows_is_worked_out_of_what_a_file_says(name):
    """Either the record is refused, or the bound of what is compiled on top of it is true."""
    make, operation, change = REDEFINED[name]
    record = to_record(make(P.tokens(2)))
    change(next(node for node in record["nodes"] if node["operation"] == operation)["settings"])
    try:
        check_settings(record)
    except BadWitnessFile:
        return
    program = from_record(record)
    for composed in (program, P.apply(np.square, program, epsilon=1e-2), P.sort(program)):
        compiled = P.compile(composed)
        off = np.abs(compiled(X) - P.interpret(composed, X)).max()
        assert off <= compiled.bound("float64").total


MADE = {
    "a function of one's own": own_function,
    "with others": lambda x: P.attend(own_function(x), x, P.multiply(x, own_function(x), epsilon=0.1)),
    "a lambda": lambda x: P.where(x, P.apply(lambda t: t * t, x, epsilon=0.1, curvature=2), 0.5),
    "a curvature of many bits": lambda x: P.apply(np.cbrt, 1 + x, epsilon=0.1, curvature=1 / 3),
    "a known one by equal pieces": lambda x: P.sort(P.apply(np.exp, x, epsilon=0.1, curvature=2.72)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MADE)
def test_a_program_is_written_again_as_it_was_read(tmp_path, name):
    a, b = tmp_path / "a", tmp_path / "b"
    te.build(MADE[name](P.tokens(2)), dtypes=("float64",)).save(a)
    te.load(a).save(b)
    assert (a / "witness.json").read_bytes() == (b / "witness.json").read_bytes()
    assert te.verify(b).holds
    te.certify(b)
    assert te.verify(b).holds
    assert to_record(te.load(a).program) == te.load(a).record()  # what is built on it keeps digest and curvature


def test_a_curvature_is_stated_as_it_was_given():
    settings = to_record(own_function(P.tokens(2)))["nodes"][-1]["settings"]
    assert settings["curvature"] == 8.0
    assert settings.keys() == {"function", "knots", "values", "curvature", "source_sha256"}


def test_a_loaded_function_of_ones_own_is_not_made_finer(tmp_path):
    """Its spline sampled more often would be nearer to the spline, and called nearer to the function."""
    te.build(own_function(P.tokens(2)), dtypes=("float64",)).save(tmp_path / "w")
    program = te.load(tmp_path / "w").program
    assert te.build(program, epsilon=0.07, dtypes=("float64",)).certificate.bound <= 0.07
    with pytest.raises(CannotBuild, match="not the function"):
        te.build(program, epsilon=1e-3, dtypes=("float64",))
