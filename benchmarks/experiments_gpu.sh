#!/bin/sh
# The figures of docs/experiments.md, in four calls of less than ten minutes each on one large GPU.
#
#   DATA=path/to/data OUT=path/for/results sh benchmarks/experiments_gpu.sh base     4 mixers at base size, one seed
#   DATA=... OUT=... sh benchmarks/experiments_gpu.sh mini     4 mixers and 3 hybrids at mini size, three seeds
#   DATA=... OUT=... sh benchmarks/experiments_gpu.sh sparse   translation, LM, sparsity against MNLI, copying
#   DATA=... OUT=... sh benchmarks/experiments_gpu.sh smoke    every experiment, a few steps of each: half a minute
#
# Every run appends one line to $OUT/results-NAME.jsonl as soon as it is done, and a run that has its record is not run
# again. Needs Python with torch, transformers, accelerate and tokenizers. TOKENS changes the pre-training budget of the
# base runs, PARALLEL how many runs share the GPU, SECONDS_LEFT when no new one may begin.
set -eu
: "${DATA:?the folder with wikipedia/, mnli/, multi30k_en_cs/ and wmt_en_cs/}"
: "${OUT:?a folder for the results}"
WORK=${WORK:-build/experiments}
export PYTHONPATH=src TOKENIZERS_PARALLELISM=true
run() {
    name=$1
    shift
    python -m thereexists.experiments run "$@" --data "$DATA" --out "$WORK/runs" --cache "$WORK/cache" --resume \
        --checkpoint-seconds 0 --results "$OUT/results-$name.jsonl"
}
case ${1:-} in
smoke) # somewhere else, so that its records are not taken for results
    WORK=$WORK/smoke
    mkdir -p "$WORK"
    [ -d "${WORK%/smoke}/cache" ] && ln -sfn ../cache "$WORK/cache"
    run smoke table-a mt lm sparsity-nli copying --size mini --steps 5 --only '[as]t*' --parallel "${PARALLEL:-4}"
    ;;
base) run base table-a --size base --tokens "${TOKENS:-40M}" --parallel "${PARALLEL:-2}" ;;
mini)
    run mini table-a --size mini --seeds 3 --parallel "${PARALLEL:-8}" --budget-seconds "${SECONDS_LEFT:-480}"
    ;;
sparse)
    run sparse mt lm sparsity-nli copying --size mini --parallel "${PARALLEL:-8}" \
        --budget-seconds "${SECONDS_LEFT:-520}"
    ;;
*)
    echo "usage: DATA=... OUT=... sh benchmarks/experiments_gpu.sh smoke|base|mini|sparse" >&2
    exit 2
    ;;
esac
