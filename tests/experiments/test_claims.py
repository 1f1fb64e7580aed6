"""Yes, no and unclear over seeds; the power law of a training curve. Each against an implementation from outside."""

import numpy as np
import pytest
from scipy import stats

from tests.experiments.records import record, stage, table_a
from thereexists.experiments.claims import Claim, difference, each_before, judge, judge_copying, order
from thereexists.experiments.plots import draw
from thereexists.experiments.report import write_report
from thereexists.experiments.results import Figure, rows
from thereexists.experiments.scaling import FROM, laws

ABC = Claim("a > b > c", "lm accuracy", order(["a", "b", "c"]))


def runs(**values):
    return rows(
        record("x", name, seed, [stage("lm", {"accuracy": value})])
        for name, seeds in values.items()
        for seed, value in enumerate(seeds)
    )


@pytest.mark.parametrize("comparisons", [1, 3])
def test_intervals_are_students_and_welchs(comparisons):
    a, b = [0.41, 0.45, 0.44], [0.30, 0.36, 0.35, 0.31]
    level = 1 - 0.05 / comparisons
    low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval(level)
    mean, half = difference(Figure.of(a), Figure.of(b), comparisons)
    assert half is not None
    assert (mean - half, mean + half) == (pytest.approx(low), pytest.approx(high))
    low, high = stats.ttest_1samp(a, 0.0).confidence_interval(level)
    assert Figure.of(a).half(comparisons) == pytest.approx((high - low) / 2)


def test_a_claim_is_yes_no_or_unclear():
    near = (0.0, 0.001, -0.001)
    spread = {"a": [0.5 + e for e in near], "b": [0.4 + e for e in near], "c": [0.3 + e for e in near]}
    assert judge(ABC, runs(**spread)).verdict == "yes"
    turned = judge(ABC, runs(a=spread["b"], b=spread["a"], c=spread["c"]))
    assert (turned.verdict, turned.why.split(" by ")[0]) == ("no", "b is ahead of a")
    assert judge(ABC, runs(**spread | {"b": [0.4, 0.5, 0.6]})).verdict == "unclear"
    assert judge(ABC, runs(**spread | {"b": [0.4]})).verdict == "unclear"  # one seed decides nothing
    # One comparison against the claim is enough, also where another is open.
    assert judge(ABC, runs(a=[0.4, 0.5, 0.6], b=spread["c"], c=spread["b"])).verdict == "no"


def test_what_has_no_record_is_never_yes():
    near = {"a": [0.5, 0.501, 0.499], "b": [0.4, 0.401, 0.399]}
    judged = judge(ABC, runs(**near))
    assert (judged.verdict, judged.why) == ("unclear", "no record of c")
    assert judge(ABC, runs(a=near["b"], b=near["a"])).verdict == "no"
    assert judge(ABC, []).verdict == "unclear"


def test_many_comparisons_are_held_to_more():
    """One comparison that is clear by itself is not so among twenty."""
    alone = Claim("a before b", "lm accuracy", each_before(["a"], ["b"]))
    made = runs(a=[0.50, 0.52, 0.54], b=[0.43, 0.45, 0.47], **{f"c{i}": [0.1, 0.1, 0.1] for i in range(20)})
    assert judge(alone, made).verdict == "yes"
    among = Claim("a before all", "lm accuracy", each_before(["a"], ["b", *(f"c{i}" for i in range(20))]))
    assert judge(among, made).verdict == "unclear"


def test_for_perplexity_less_is_more():
    made = rows(
        record("x", name, seed, [stage("lm", {"perplexity": value + seed / 10})])
        for name, value in (("a", 20.0), ("b", 30.0))
        for seed in range(3)
    )
    claim = Claim("a before b", "lm perplexity", (("a", "b"),), low=True)
    assert judge(claim, made).verdict == "yes"
    assert judge(Claim("b before a", "lm perplexity", (("b", "a"),), low=True), made).verdict == "no"


def test_copying_is_judged_by_who_copies_and_who_does_not():
    def deep(**values):
        return rows(
            record("copying", name, seed, [stage("copy", {"accuracy": value})], {"run": name, "layers": 4})
            for name, seeds in values.items()
            for seed, value in enumerate(seeds)
        )

    def verdict(**values):
        return judge_copying("only star fails", deep(**values), lambda name: name != "star").verdict

    assert verdict(dense=[1.0, 1.0], star=[0.1, 0.1]) == "yes"
    assert verdict(dense=[1.0, 1.0], star=[1.0, 1.0]) == "no"
    assert verdict(dense=[0.9, 0.9], star=[0.1, 0.1]) == "no"
    assert verdict(dense=[1.0, 0.9], star=[0.1, 0.1]) == "unclear"
    assert verdict(dense=[1.0], star=[0.1]) == "unclear"


def with_curve(made, exponent, noise, seed):
    rng = np.random.default_rng(seed)
    tokens = np.geomspace(1e6, 1e8, 12)
    losses = 40 * tokens**-exponent * np.exp(noise * rng.standard_normal(12))
    made["stages"]["mlm"]["curve"] = [
        {"step": i, "tokens": float(t), "loss": float(loss)}
        for i, (t, loss) in enumerate(zip(tokens, losses, strict=True))
    ]
    return made


def test_a_power_law_is_found_again():
    (one,) = table_a(("attention",), seeds=1)
    (law,) = laws([with_curve(one, 0.2, 0.0, 0)])
    assert law.exponent == pytest.approx(0.2)
    assert law.at(5e7) == pytest.approx(40 * 5e7**-0.2)
    assert law.half == pytest.approx(0.0, abs=1e-9)
    (law,) = laws([with_curve(one, 0.2, 0.02, 0)])
    points = [(p["tokens"], p["loss"]) for p in one["stages"]["mlm"]["curve"] if p["tokens"] >= FROM * 1e8]
    fit = stats.linregress(*np.log(points).T)
    assert law.exponent == pytest.approx(-fit.slope)
    assert law.half == pytest.approx(stats.t.ppf(0.975, len(points) - 2) * fit.stderr)
    assert not law.over_seeds


def test_over_seeds_the_interval_is_over_seeds():
    made = [with_curve(one, 0.2, 0.01, i) for i, one in enumerate(table_a(("attention",), seeds=3))]
    (law,) = laws(made)
    singles = [laws([one])[0].exponent for one in made]
    assert law.over_seeds
    assert law.exponent == pytest.approx(np.mean(singles))
    assert law.half == pytest.approx(stats.t.ppf(0.975, 2) * np.std(singles, ddof=1) / np.sqrt(3))


def test_the_page_shows_loss_against_tokens_where_it_is_recorded(tmp_path):
    plain = table_a(seeds=1)
    assert laws(plain) == []
    assert len(draw(rows(plain), plain, tmp_path)) == 1
    made = [with_curve(one, 0.1 + 0.02 * i, 0.0, 0) for i, one in enumerate(plain)]
    mixed = [*made, *table_a(seeds=2)[1::2]]  # a second seed whose records are older than curves
    assert len(draw(rows(mixed), mixed, tmp_path)) == 2
    plots = draw(rows(made), made, tmp_path)
    assert [path.name for path in plots] == ["experiment-table-a-mini.png", "experiment-table-a-mini-loss.png"]
    write_report(made, tmp_path / "page.md", "c", plots)
    page = (tmp_path / "page.md").read_text()
    assert "experiment-table-a-mini-loss.png" in page
    assert "| 0.160 ± 0.000 (one seed) | 5.1M | 2,000 s |" in page
