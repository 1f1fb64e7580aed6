"""``python without_us.py FOLDER ASKED.json``: plain transformers on a stock folder, where we cannot be imported.

ASKED is {"prompts": [...], "rounds": folder}. Prints one JSON object: the answers of every way to ask.
"""

import json
import sys
from importlib.abc import MetaPathFinder


class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "thereexists":
            raise ImportError("this process must do without thereexists")
        return None


def main(folder, asked):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM, pipeline
    from transformers.utils import logging

    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompts, found = asked["prompts"], {}
    for dtype in ("float32", "bfloat16"):
        for attention in ("eager", "sdpa"):
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation=attention).eval()
            assert type(model) is LlamaForCausalLM
            batch = tokenizer(prompts, return_tensors="pt", padding=True)
            for cache in (True, False):
                ids = model.generate(**batch, use_cache=cache)
                ends = (ids == tokenizer.eos_token_id).any(1).all().item()
                texts = tokenizer.batch_decode(ids[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
                found[f"{dtype} {attention} generate cache={cache} ends={ends}"] = texts
            with torch.no_grad():  # positions 0, 1, … over the padding too: only differences count
                logits = model(**batch).logits[:, -1]
            found[f"{dtype} {attention} forward"] = tokenizer.batch_decode(logits.argmax(-1)[:, None])
            alone = [model.generate(**tokenizer(p, return_tensors="pt"))[0, -2:-1] for p in prompts[:8]]
            found[f"{dtype} {attention} alone"] = tokenizer.batch_decode(torch.stack(alone))
        model.save_pretrained(asked["rounds"])
        tokenizer.save_pretrained(asked["rounds"])
        again = AutoModelForCausalLM.from_pretrained(asked["rounds"], dtype=dtype).eval()
        with torch.no_grad():
            same = torch.equal(model(**batch).logits, again(**batch).logits)
        found[f"{dtype} saved and loaded, equal={same}"] = tokenizer.batch_decode(
            again.generate(**batch)[:, batch["input_ids"].shape[1] :], skip_special_tokens=True
        )
        answer = pipeline("text-generation", folder, dtype=dtype)
        said = [answer(prompt)[0]["generated_text"] for prompt in prompts[:8]]
        found[f"{dtype} pipeline"] = [text.removeprefix(prompt) for text, prompt in zip(said, prompts, strict=False)]
    assert "thereexists" not in sys.modules
    print(json.dumps(found))


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocked())
    with open(sys.argv[2], encoding="utf-8") as file:
        main(sys.argv[1], json.load(file))
