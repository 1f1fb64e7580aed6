"""``python many_answers.py ASKED.json``: completions by ``generate``, in a process where we cannot be imported.

ASKED is {"folders": {folder: prompts}, "dtypes": [...], "caches": [...]}. Prints one JSON object: for each
"folder dtype cache" what was written behind every prompt, with … where it did not end.
"""

import json
import sys
from importlib.abc import MetaPathFinder

BATCH = 250


class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "thereexists":
            raise ImportError("this process must do without thereexists")
        return None


def main(asked):
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    found = {}
    for folder, prompts in asked["folders"].items():
        tokenizer = AutoTokenizer.from_pretrained(folder)
        for dtype in asked["dtypes"]:
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
            assert type(model) is LlamaForCausalLM
            for cache in asked["caches"]:
                told = found[f"{folder} {dtype} {cache}"] = []
                for k in range(0, len(prompts), BATCH):
                    batch = tokenizer(prompts[k : k + BATCH], return_tensors="pt", padding=True)
                    ids = model.generate(**batch, use_cache=cache)[:, batch["input_ids"].shape[1] :]
                    ends = (ids == tokenizer.eos_token_id).any(1).tolist()
                    texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
                    told += [text if end else f"{text}…" for text, end in zip(texts, ends, strict=True)]
    assert "thereexists" not in sys.modules
    print(json.dumps(found))


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocked())
    with open(sys.argv[1], encoding="utf-8") as file:
        main(json.load(file))
