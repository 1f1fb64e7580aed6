#!/bin/sh
# The figures of docs/experiments.md on one large GPU, in calls of less than ten minutes each.
#
#   export DATA=path/to/data OUT=path/for/results
#   sh benchmarks/experiments_gpu.sh smoke     made-up data, a few steps, one stop and one resume: to see that all works
#   sh benchmarks/experiments_gpu.sh base      4 mixers, then 3 hybrids, at base size, three seeds; one run at a time
#   sh benchmarks/experiments_gpu.sh small     4 mixers at 6 blocks of width 512, 100M tokens, three seeds
#   sh benchmarks/experiments_gpu.sh mini      4 mixers and 3 hybrids at mini size, three seeds
#   sh benchmarks/experiments_gpu.sh sparse    translation, copying, sparsity against MNLI, language modelling, three seeds
#
# Then, anywhere (this scores the translations, for which sacrebleu is needed, and draws the plots):
#
#   thereexists results $OUT/results-*.jsonl --data $DATA --collect docs/data/experiments \
#       --report docs/experiments.md --plots docs/img
#
# A call stops $STOP seconds after its start: the run under way writes its checkpoint, and the same call again goes on
# there. Every run appends one line to $OUT/results-NAME.jsonl as soon as it is done, and all records are packed into
# $OUT/records-NAME.tar at the end. A machine that has lost $WORK is given that file, as DATA/records/ANYTHING.tar, and
# repeats nothing that is in it.
#
# A machine that takes little at once is given the data in parts: `stage FOLDER` adds a folder to $WORK/data, and calls
# without DATA read that. Corpora may be files of tokens, which spares the machine a minute or two and half of the bytes:
#
#   python -m thereexists.experiments prepare table-a --size base --data DATA --out PART
#
# Needs Python with torch, transformers and tokenizers only. TOKENS is the pre-training budget of the base runs, SEEDS
# how many, ONLY globs on the names of the runs with commas between, EXPERIMENTS which of `sparse`, PARALLEL how many
# share the GPU.
set -eu
WORK=${WORK:-build/experiments}
STOP=${STOP:-555}
STARTED=$(date +%s)
PYTHON=${PYTHON:-python3}
PARALLEL=${PARALLEL:-}
export PYTHONPATH=src TOKENIZERS_PARALLELISM=true PYTHONUNBUFFERED=1

# run NAME ARGUMENTS...: what is left to do of it, until the time is over; then the records, packed.
run() {
    name=$1
    shift
    : "${OUT:?a folder for the results}"
    DATA=${DATA:-$WORK/data}
    mkdir -p "$OUT" "$WORK/runs"
    for records in "$DATA"/records/*.tar; do
        if [ -f "$records" ]; then tar -xf "$records" -C "$WORK/runs"; fi
    done
    status=0
    $PYTHON -m thereexists.experiments run "$@" ${ONLY:+--only "$ONLY"} --data "$DATA" --out "$WORK/runs" \
        --cache "$WORK/cache" --resume --checkpoint-seconds 0 --results "$OUT/results-$name.jsonl" \
        --stop-seconds $((STOP + STARTED - $(date +%s))) || status=$?
    (cd "$WORK/runs" && find . -name run.json | sort | tar -cf - -T -) >"$OUT/records-$name.tar"
    echo "$(find "$WORK/runs" -name run.json | wc -l) records in $OUT/records-$name.tar, $(($(date +%s) - STARTED)) s" >&2
    return $status
}
# Kernels of several processes run side by side only under NVIDIA's multi-process service. It is tried, and left alone
# where it does not work; MPS=0 does not try.
share_the_gpu() {
    [ "${MPS:-1}" = 1 ] && command -v nvidia-cuda-mps-control >/dev/null || return 0
    mkdir -p "$WORK/mps"
    CUDA_MPS_PIPE_DIRECTORY=$(cd "$WORK/mps" && pwd)
    CUDA_MPS_LOG_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY
    export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    nvidia-cuda-mps-control -d || true
    trap 'echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1 || true' EXIT
    if timeout 60 $PYTHON -c 'import torch; torch.ones(9, device="cuda").sum().item()'; then
        echo "The multi-process service works." >&2
    else
        echo "No multi-process service; the runs take turns on the GPU." >&2
        echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1 || true
        trap - EXIT
        unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    fi
}
# The same path as `base`, with made-up data: two parts staged, tokens prepared, a stop, a resume, records that come back.
# On a GPU it is the base model; a CPU gets a smaller one.
smoke() {
    WORK=$WORK/smoke
    rm -rf "$WORK"
    mkdir -p "$WORK"
    $PYTHON - "$WORK/text" <<'PYTHON'
import json, random, sys
from pathlib import Path
root, rng = Path(sys.argv[1]), random.Random(0)
words = [a + b + c for a in "bdfgk" for b in "aeiou" for c in "lmnprst"]
text = lambda count: " ".join(rng.choices(words, k=count))
for name, count in (("wiki_train_1", 600), ("wiki_train_2", 600), ("wiki_valid", 40)):
    path = root / f"wikipedia/{name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(text(100) for _ in range(count)))
(root / "mnli").mkdir()
for name, count in (("train", 600), ("dev_matched", 60)):
    rows = [{"premise": text(9), "hypothesis": text(4), "label": rng.randrange(3)} for _ in range(count)]
    (root / f"mnli/{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
PYTHON
    small='{"options": {"vocabulary": 300, "evaluate": 512}}'
    if ! $PYTHON -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
        small='{"options": {"vocabulary": 300, "evaluate": 64}, "batch": 8, "length": 32, "model": {"hidden_size": 64,
               "num_attention_heads": 2, "num_hidden_layers": 6, "intermediate_size": 64}}'
    fi
    $PYTHON -m thereexists.experiments prepare table-a --size base --data "$WORK/text" --out "$WORK/a" \
        --cache "$WORK/cache-there" --set "$small"
    mkdir -p "$WORK/b/wikipedia" "$WORK/b/records"
    mv "$WORK/a/wikipedia/wiki_train_2.tokens.xz" "$WORK/b/wikipedia"
    mv "$WORK/text/mnli" "$WORK/b"
    stage "$WORK/a"
    stage "$WORK/b"
    DATA= ONLY=${ONLY:-attention,sepconv}
    set -- table-a --size base --steps "${STEPS:-80}" --set "$small"
    stop=$STOP
    STOP=$(($(date +%s) - STARTED + ${FIRST:-14})) && run smoke-1 "$@" # it is stopped somewhere
    STOP=$stop && run smoke-2 "$@"
    # Another machine, with nothing but the records: nothing is left to do.
    cp "$OUT/records-smoke-2.tar" "$WORK/data/records/"
    rm -rf "$WORK/runs"
    run smoke-3 "$@"
    if [ -e "$OUT/results-smoke-3.jsonl" ]; then echo "A run that has its record was repeated." >&2 && return 1; fi
    cmp "$OUT/records-smoke-2.tar" "$OUT/records-smoke-3.tar"
    echo "Smoke test passed." >&2
}
stage() {
    mkdir -p "$WORK/data"
    cp -r "$1/." "$WORK/data/"
    find "$WORK/data" -type f | sort >&2
}
case ${1:-} in
smoke) smoke ;;
stage) stage "${2:?a folder with a part of the data}" ;;
base) run base table-a --size base --seeds "${SEEDS:-3}" ${TOKENS:+--tokens "$TOKENS"} --parallel "${PARALLEL:-1}" ;;
small)
    share_the_gpu
    run small table-a --size small --seeds "${SEEDS:-3}" --parallel "${PARALLEL:-2}"
    ;;
mini)
    share_the_gpu
    run mini table-a --size mini --seeds "${SEEDS:-3}" --parallel "${PARALLEL:-5}"
    ;;
sparse)
    share_the_gpu
    # shellcheck disable=SC2086 # several names
    run sparse ${EXPERIMENTS:-mt copying sparsity-nli lm} --size mini --seeds "${SEEDS:-3}" --parallel "${PARALLEL:-8}"
    ;;
*)
    echo "usage: [DATA=...] OUT=... sh benchmarks/experiments_gpu.sh smoke|stage FOLDER|base|small|mini|sparse" >&2
    exit 2
    ;;
esac
