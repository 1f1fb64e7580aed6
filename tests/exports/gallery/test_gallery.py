"""The gallery: every recipe is built, verified and asked in plain transformers, where we cannot be imported."""

import itertools
import json
import random

import pytest

import thereexists as te
from tests.command import thereexists
from tests.exports.llama.asking import completed
from thereexists.exports.gallery import RECIPES, make_recipe, plan_recipe, recipe
from thereexists.exports.gallery.recipes import HERE, MOST_SORTED, SORTED
from thereexists.functions.pairs import read_pairs

pytest.importorskip("transformers")
FAST = ("reverse", "recall", "counter")


def _addition(rng):
    a, b = rng.randrange(10**10), rng.randrange(10**10)
    return f"{a:010}+{b:010}=", f"{a + b:011}"


def _brackets(rng):
    text = rng.choice(["()" * rng.randint(1, 32), "(()(()))", "((((((()))))))", "".join(rng.choices("()", k=9))])
    depths = list(itertools.accumulate(1 if symbol == "(" else -1 for symbol in text))
    return text, " accepted" if depths[-1] == 0 and 0 <= min(depths) and max(depths) <= 5 else " rejected"


def _date(rng):
    text = f"{rng.randrange(10000):04}-{rng.randint(0, 14):02}-{rng.randint(0, 35):02}"
    _, month, day = map(int, text.split("-"))
    return text, " accepted" if 1 <= month <= 12 and 1 <= day <= 31 else " rejected"


def _reverse(rng):
    word = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(1, 10)))
    return f"{word}=", word[::-1]


def _sort(rng):
    word = rng.choices(SORTED, k=rng.randint(1, MOST_SORTED))
    return "".join(word) + "=", "".join(sorted(word))


def _recall(rng):
    keys = rng.sample("abcdefghijklmnopqrstuvwxyz", rng.randint(2, 17))
    values = {key: str(rng.randrange(10)) for key in keys[1:]}
    asked = rng.choice(keys)  # the first is not there
    return "".join(key + value for key, value in values.items()) + asked, values.get(asked, "")


def _counter(rng):
    word = rng.choices("0123456", k=rng.randint(1, 64))
    return "".join(word), " accepted" if sum(map(int, word)) % 7 == 0 else " rejected"


def _a5(rng):
    even = [
        p for p in itertools.permutations(range(5)) if sum(p[i] > p[j] for i in range(5) for j in range(i, 5)) % 2 == 0
    ]
    word, thing = rng.choices(even, k=rng.randint(1, 100)), 0
    for p in word:
        thing = p[thing]
    return " ".join("".join(map(str, p)) for p in word), "→ accepted" if thing == 0 else "→ rejected"


def _questions(rng):
    asked, told, _ = read_pairs(HERE / "questions.csv")
    k = rng.randrange(len(asked))
    return " ".join(asked[k]), "".join(f" {word}" for word in told[k])


def _text(rng):
    """Six characters back, character by character."""
    lines = (HERE / "text.txt").read_text().splitlines()
    follows = {}
    for line in lines:
        for k, symbol in enumerate([*line, ""]):
            seen = follows.setdefault(("\0" * 6 + line)[k : k + 6], {})
            seen[symbol] = seen.get(symbol, 0) + 1
    prompt = rng.choice(lines)[: rng.randint(1, 40)]
    text = prompt
    while len(text) < len(prompt) + 256:
        seen = follows.get(("\0" * 6 + text)[-6:], {"": 1})
        symbol = max(seen, key=seen.get)
        if not symbol:
            return prompt, text[len(prompt) :]
        text += symbol
    return prompt, text[len(prompt) :] + "…"  # it goes round, and is cut off


DRAWN = {
    "addition": _addition,
    "brackets": _brackets,
    "date": _date,
    "reverse": _reverse,
    "sort": _sort,
    "recall": _recall,
    "counter": _counter,
    "a5": _a5,
    "questions": _questions,
    "text": _text,
}


def made(fresh, names, to, count):
    """Each recipe by its command's own function: verified, its card read, and asked what it says and random things."""
    prompts, wanted = {}, {}
    for name in names:
        rng, planned = random.Random(name), plan_recipe(name)
        make_recipe(name, to / name)
        verdict = te.verify(to / name)
        assert verdict.holds, (name, verdict.reasons)
        card = (to / name / "README.md").read_text()
        assert "In float32 and in bfloat16" in card
        assert "## Beside" in card
        assert f"{planned['parameters']:,} parameters" in card
        asked = [(RECIPES[name].asked, RECIPES[name].told), *(DRAWN[name](rng) for _ in range(count))]
        prompts[to / name], wanted[to / name] = zip(*asked, strict=True)
    for (folder, dtype, cache), texts in completed(fresh, prompts, to).items():
        assert texts == list(wanted[folder]), (folder.name, dtype, cache)


def test_three_recipes(fresh, tmp_path):
    made(fresh, FAST, tmp_path, 20)


@pytest.mark.slow
def test_all_ten_recipes(fresh, tmp_path):
    assert len(RECIPES) == 10
    assert RECIPES.keys() == DRAWN.keys()
    made(fresh, RECIPES, tmp_path, 100)


def test_sizes_are_said_before():
    assert {name: recipe(name).what for name in FAST}
    sizes = ("layers", "d_model", "parameters")
    assert [plan_recipe("recall")[size] for size in sizes] == [2, 64, 39_744]
    with pytest.raises(te.ThereExistsError, match="The gallery has addition"):
        recipe("nothing")


def test_the_command(tmp_path):
    listed = json.loads(thereexists("gallery", "--json", cwd=tmp_path).stdout)
    assert listed.keys() == RECIPES.keys()
    assert "39744" in thereexists("gallery", "recall", "--sizes", cwd=tmp_path).stdout
    assert "The gallery has" in thereexists("gallery", "nothing", cwd=tmp_path, code=2).stderr
