"""``python in_transformer_lens.py FOLDER PROMPT``: what differs in TransformerLens from plain transformers."""

import json
import sys

import torch
from transformer_lens.model_bridge import TransformerBridge
from transformers import AutoModelForCausalLM, AutoTokenizer

if __name__ == "__main__":
    folder, prompt = sys.argv[1:]
    ids = AutoTokenizer.from_pretrained(folder)(prompt, return_tensors="pt").input_ids
    stock = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    bridge = TransformerBridge.boot_transformers(folder, device="cpu", dtype=torch.float32)
    with torch.no_grad():
        wanted = stock(ids, output_hidden_states=True)
        logits, cache = bridge.run_with_cache(ids)
    different = [] if torch.equal(logits, wanted.logits) else ["logits"]
    for t in range(stock.config.num_hidden_layers):
        if not torch.equal(cache[f"blocks.{t}.hook_resid_pre"], wanted.hidden_states[t]):
            different.append(f"before layer {t + 1}")
    print(json.dumps({"layers": stock.config.num_hidden_layers, "different": different}))
