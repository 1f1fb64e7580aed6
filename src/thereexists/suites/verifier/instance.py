"""One verification problem with its answer: drawn, decided by proof, checked by running, and only then written.

**The verdict.** The unsafe set of the property is {Y_k ≥ c} (or ≤, or two such half-spaces). The family knows the
largest value m of Y_k over the boxes, up to ``slack``, for the function; the network is within ``bound`` of the
function in real arithmetic. So c > m + slack + bound means that no input is unsafe (unsat), with the margin c − m −
slack − bound; and c < m − slack − bound means that the family's point is (sat). Between the two nothing is said: no
such instance is made.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from thereexists.core.errors import CannotBuild
from thereexists.core.rounded_figures import rounded_up
from thereexists.functions.target import Array
from thereexists.suites.disguise import disguise
from thereexists.suites.net import Net
from thereexists.suites.verifier import onnx_files, vnnlib
from thereexists.suites.verifier.families import FAMILIES, Built, Family, Question
from thereexists.suites.verifier.families.base import LEVELS

POINTS = 10_000
FEWER = 1_000  # in float64
MOST_BOUND = 1e-6  # of the distance to the function
VARIANTS = 3  # networks of a family and level
SECONDS = (30, 30, 60, 60, 120)  # how long a tool may take, by level


@dataclass(frozen=True)
class Decided:
    """What the proof says of a property."""

    verdict: str  # sat or unsat
    margin: float
    extremes: tuple[float, ...]  # one for each half-space
    point: Array | None  # a counterexample, if there is one


@dataclass(frozen=True)
class Instance:
    """Two files and the truth about them."""

    name: str
    onnx: bytes
    vnnlib: str
    truth: dict[str, Any]

    @property
    def files(self) -> dict[str, bytes]:
        return {f"onnx/{self.name}.onnx": self.onnx, f"vnnlib/{self.name}.vnnlib": self.vnnlib.encode()}


def draw(seed: int, number: int) -> Instance:
    """Instance ``number`` of the suite with this seed; nothing else has an influence on it."""
    text, asked, truth = stated(seed, number)
    family = FAMILIES[truth["family"]]
    parts = dressed(built(family, truth["params"]).net, truth["disguise"], family.turns)
    content = onnx_files.written(parts)
    measured = run_checks(parts, content, asked, truth)
    return Instance(truth["name"], content, text, truth | {"float32": power_of_ten(measured)})


def name_of(number: int) -> str:
    """Families take turns, then levels."""
    names = list(FAMILIES)
    return f"{names[number % len(names)]}-{1 + number // len(names) % LEVELS}-{number:04d}"


def stated(seed: int, number: int) -> tuple[str, vnnlib.Property, dict[str, Any]]:
    """The property, as text and as parsed back, and all of the truth that is proved and not measured."""
    names = list(FAMILIES)
    family, level = FAMILIES[names[number % len(names)]], 1 + number // len(names) % LEVELS
    round_ = number // (len(names) * LEVELS)
    holds = (number % len(names) + level + round_) % 2 == 0
    params = family.draw(np.random.default_rng([seed, names.index(family.name), level, round_ % VARIANTS]), level)
    rng = np.random.default_rng([seed, 1 << 20, number])
    question = family.ask(params, rng)
    asked = _property(family, params, question, holds, rng)
    worn, split = bool(rng.random() < 0.7), bool(rng.random() < 0.3)
    mask = {"seed": [seed, 1 << 21, number], "worn": worn, "split": worn and split and family.turns}
    found = decide(family, params, asked)
    if found.verdict != ("unsat" if holds else "sat"):
        raise CannotBuild(f"{family.name} {params}: wanted holds = {holds}, proved {found}.")
    name = name_of(number)
    text = vnnlib.text_of(asked, f"{name} of the thereexists verifier suite, seed {seed}")
    made = built(family, params)
    return (
        text,
        vnnlib.parse(text, question.boxes[0][0].shape),
        {
            "name": name,
            "verdict": found.verdict,
            "margin": found.margin,
            "family": family.name,
            "level": level,
            "params": params,
            "disguise": mask,
            "bound": made.bound,
            "extremes": list(found.extremes),
            "proof": made.proof,
            "counterexample": None if found.point is None else found.point.ravel().tolist(),
            "timeout": SECONDS[level - 1],
        },
    )


@functools.lru_cache(maxsize=64)
def _built(name: str, params: str) -> Built:
    given = json.loads(params)
    FAMILIES[name].require(given)
    found = FAMILIES[name].build(given)
    if not found.bound <= MOST_BOUND:
        raise CannotBuild(
            f"A network of {name} is {rounded_up(found.bound, 3)} away from its function; {MOST_BOUND:g} is allowed."
        )
    return found


def built(family: Family, params: dict[str, Any]) -> Built:
    """The network of these parameters, with its proof; the same object again if it was asked for a moment ago."""
    return _built(family.name, json.dumps(params, sort_keys=True))


def dressed(net: Net, mask: dict[str, Any], turns: bool) -> onnx_files.Parts:
    """The network in its disguise, in the parts that are written."""
    rng = np.random.default_rng(mask["seed"])
    if not mask["worn"]:
        return onnx_files.parts_of(net)
    try:
        worn, _ = disguise(net, rng, turns)
    except CannotBuild:  # its numbers have too many bits for a rotation
        worn, _ = disguise(net, np.random.default_rng(mask["seed"]), False)
    return onnx_files.parts_of(worn, rng if mask["split"] else None)


def _property(
    family: Family, params: dict[str, Any], question: Question, holds: bool, rng: np.random.Generator
) -> vnnlib.Property:
    """A limit on the right side of the extreme; sometimes a second half-space that nothing reaches."""
    width = built(family, params).net.W_out.shape[1]
    index = question.output[0] * width + question.output[1]
    t = float(rng.choice(family.margins))
    value, _, _ = extreme(family, params, question)
    limits = [vnnlib.Limit(index, question.sense, _single(value + question.sense * (t if holds else -t)))]
    if rng.random() < 0.3:
        other = Question(question.boxes, question.output, -question.sense)
        try:
            far, _, _ = extreme(family, params, other)
            limits.append(vnnlib.Limit(index, other.sense, _single(far + other.sense * t)))
        except CannotBuild:
            pass
    return vnnlib.Property(question.boxes, tuple(limits), built(family, params).net.n * width)


def extreme(family: Family, params: dict[str, Any], question: Question) -> tuple[float, float, Array]:
    """What the family proves of these boxes, after all that the proof assumes was looked at."""
    family.require(params, question.boxes)
    return family.extreme(params, question)


def _single(value: float) -> float:
    return float(np.float32(value))


def decide(family: Family, params: dict[str, Any], asked: vnnlib.Property) -> Decided:
    """Sat or unsat, from the family's extremes and the network's bound; refused where neither is proved."""
    made = built(family, params)
    width = made.net.W_out.shape[1]
    extremes, margins, point = [], [], None
    for limit in asked.limits:
        question = Question(asked.boxes, divmod(limit.index, width), limit.sense)
        value, slack, where = extreme(family, params, question)
        beyond = limit.sense * (limit.value - value)
        extremes.append(value)
        margins.append(abs(beyond) - slack - made.bound)
        if margins[-1] <= 0:
            raise CannotBuild(f"The limit {limit.value} is too close to the extreme {value} to say anything.")
        if beyond < 0:
            point, deepest = where, margins[-1]
            return Decided("sat", deepest, tuple(extremes), point)
    return Decided("unsat", min(margins), tuple(extremes), None)


def sample(asked: vnnlib.Property, count: int, rng: np.random.Generator) -> Array:
    """Points of the boxes, numbers of float32: inner ones, and every tenth a corner."""
    low, high = (np.stack(sides) for sides in zip(*asked.boxes, strict=True))
    which = rng.integers(len(asked.boxes), size=count)
    share = rng.random((count, *low.shape[1:]))
    share[::10] = rng.integers(0, 2, share[::10].shape)
    X = (low[which] + share * (high - low)[which]).astype(np.float32).astype(np.float64)
    return np.clip(X, low[which], high[which])


def run_checks(parts: onnx_files.Parts, content: bytes, asked: vnnlib.Property, truth: dict[str, Any]) -> float:
    """ONNX Runtime on 10,000 points and on the counterexample; how far float32 is from the function there, at most.

    The network must be near the function, no point of a property that holds may be unsafe, and the counterexample of
    one that does not must be, in float32 and in float64, by half of the margin at least.
    """
    family, params, name = FAMILIES[truth["family"]], truth["params"], truth["name"]
    seed = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)
    X = sample(asked, POINTS, np.random.default_rng(seed))
    margin, worst, known = truth["margin"], 0.0, np.ones(1, dtype=bool)
    for dtype, count in ((np.float32, POINTS), (np.float64, FEWER)):
        run = onnx_files.runner(parts, dtype)
        Y = run(X[:count])
        known = family.covers(params, X[:count])
        off = float(np.abs(Y - family.reference(params, X[:count]))[known].max(initial=0.0))
        allowed = truth["bound"] + (1e-9 if dtype is np.float64 else margin / 2)
        if not off <= allowed:
            raise CannotBuild(f"{name}: ONNX Runtime is {off:.3g} away from the function in {dtype.__name__}.")
        worst = max(worst, off)
        if truth["verdict"] == "unsat":
            if not (asked.depth(Y) < 0).all():
                raise CannotBuild(f"{name}: a property that is said to hold is violated in {dtype.__name__}.")
            continue
        point = np.array(truth["counterexample"]).reshape(1, *X.shape[1:])
        if not asked.inside(point).all() or not np.array_equal(point, point.astype(np.float32)):
            raise CannotBuild(f"{name}: its counterexample is not in the box, or is not a float32 number.")
        if not (asked.depth(run(point)) > margin / 2).all():
            raise CannotBuild(f"{name}: its counterexample is not one in {dtype.__name__}.")
    shown = X[known.argmax()] if truth["verdict"] == "unsat" else np.array(truth["counterexample"])
    one = shown.reshape(1, *X.shape[1:])
    (alone,) = onnx_files.session(content).run(None, {"X": one.astype(np.float32)})  # the file itself, batch 1
    if not np.abs(alone - family.reference(params, one)).max() <= truth["bound"] + margin / 2:
        raise CannotBuild(f"{name}: the file does not run as its graph does.")
    return worst


def power_of_ten(away: float) -> float:
    """Rounded up: the last bits are a machine's own."""
    return float(10.0 ** np.ceil(np.log10(max(away, 1e-12))))
