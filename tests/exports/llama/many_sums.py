"""``python many_sums.py FOLDER COUNT DTYPE``: sums by ``generate``, without us; prints the wrong ones."""

import json
import random
import sys
import time
from importlib.abc import MetaPathFinder

BATCH = 1000


class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "thereexists":
            raise ImportError("this process must do without thereexists")
        return None


def operands(rng, count):
    """A quarter at random, one of few digits, one that carries everywhere or nowhere, and one just beside that."""
    most, found = 10**10, []
    for k in range(count):
        a, b = rng.randrange(most), rng.randrange(most)
        if k % 4 == 1:
            a, b = rng.randrange(10 ** rng.randint(1, 10)), rng.randrange(10 ** rng.randint(1, 10))
        elif k % 4 == 2:
            b = min(most - 1, most - 1 - a + rng.randint(0, 1))
        elif k % 4 == 3:
            b = min(most - 1, max(0, most - 1 - a + rng.choice((-1, 1)) * 10 ** rng.randint(0, 9)))
        found.append((a, b))
    return found


def main(folder, count, dtype):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    pairs, wrong, start = operands(random.Random(1), count), [], time.perf_counter()
    for k in range(0, count, BATCH):
        part = pairs[k : k + BATCH]
        prompts = [f"{a:010}+{b:010}=" for a, b in part]
        with torch.no_grad():
            ids = model.generate(**tokenizer(prompts, return_tensors="pt"))
        texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
        told = zip(part, prompts, texts, ids[:, -1].tolist(), strict=True)
        wrong += [p for (a, b), p, text, last in told if text != f"{p}{a + b:011}" or last != tokenizer.eos_token_id]
    print(json.dumps({"sums": count, "wrong": wrong[:10], "seconds": round(time.perf_counter() - start, 1)}))


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocked())
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
