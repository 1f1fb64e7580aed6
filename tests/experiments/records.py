"""Records of runs that nobody made: what tables and pages are tested on."""


def stage(task, metrics, model=None, **more):
    data = {
        "mlm": {"corpus": {"name": "c.txt", "tokens": 9_000_000}, "valid": {"name": "v.txt", "tokens": 50_000},
                "tokenizer": {"vocabulary": 16384}},
        "nli": {"train": {"name": "mnli/train", "examples": 300}, "dev": {"examples": 99}, "labels": [0, 1, 2]},
        "copy": {"symbols": 7},
        "mt": {"train": [{"name": "train.en"}], "pairs": 10, "pairs_left_out": 1},
    }  # fmt: skip
    settings = {"batch": 8, "length": 16, "lr": 0.1, "precision": "bf16", "model": model or {}, "options": {},
                "budget": {"tokens": 2_000_000}}  # fmt: skip
    return {"task": task, "metrics": metrics, "settings": settings, "data": data.get(task, data["mlm"]),
            "parameters": 5_100_000,
            "tokens_seen": 2_000_000, "tokens_per_second": 1000, "seconds": 60.0, "steps": 10, "device": "cpu",
            "history": [[5, 2.0], [10, 1.0]]} | more  # fmt: skip


def record(experiment, run, seed, stages, labels=None, size="mini"):
    return {"experiment": experiment, "size": size, "run": run, "labels": labels or {"run": run}, "seed": seed,
            "seconds": 60.0, "parallel": 1, "stages": {s["task"]: s for s in stages}}  # fmt: skip


def table_a(order=("attention", "sepconv", "bproj", "average"), seeds=2):
    return [
        record("table-a", mixer, seed, [
            stage("mlm", {"accuracy": 0.5 - 0.1 * place + 0.01 * seed}, {"mixer": mixer}),
            stage("nli", {"accuracy": 0.7 - 0.1 * place}),
        ])
        for seed in range(seeds) for place, mixer in enumerate(order)
    ]  # fmt: skip
