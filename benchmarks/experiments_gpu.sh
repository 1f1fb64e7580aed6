#!/bin/sh
# The figures of docs/experiments.md on one large GPU, in calls of less than ten minutes each.
#
#   export DATA=path/to/data OUT=path/for/results
#   sh benchmarks/experiments_gpu.sh smoke     5 steps of a third of all runs, to see that everything works
#   sh benchmarks/experiments_gpu.sh base      4 mixers at base size, one seed
#   sh benchmarks/experiments_gpu.sh small     4 mixers at 6 blocks of width 512, 100M tokens, one seed
#   sh benchmarks/experiments_gpu.sh mini      4 mixers and 3 hybrids at mini size, three seeds
#   sh benchmarks/experiments_gpu.sh sparse    translation, language modelling, sparsity against MNLI, copying
#
# Then, anywhere (this scores the translations, for which sacrebleu is needed, and draws the plots):
#
#   thereexists results $OUT/results-*.jsonl --data $DATA --collect docs/data/experiments \
#       --report docs/experiments.md --plots docs/img
#
# Every run appends one line to $OUT/results-NAME.jsonl as soon as it is done; a call that is repeated skips what has its
# record under $WORK. Needs Python with torch, transformers, accelerate and tokenizers only. Preparing the 49 MB corpus
# (tokenizer, 40M tokens) takes a minute on 16 cores and is kept in $WORK/cache. TOKENS is the pre-training budget of the
# base runs, PARALLEL how many runs share the GPU, SECONDS_LEFT the time after which no new one begins.
set -eu
: "${DATA:?the folder with wikipedia/, mnli/, multi30k_en_cs/ and wmt_en_cs/}"
: "${OUT:?a folder for the results}"
WORK=${WORK:-build/experiments}
PARALLEL=${PARALLEL:-}
export PYTHONPATH=src TOKENIZERS_PARALLELISM=true
run() {
    name=$1
    shift
    ${PYTHON:-python} -m thereexists.experiments run "$@" --data "$DATA" --out "$WORK/runs" --cache "$WORK/cache" \
        --resume --checkpoint-seconds 0 --results "$OUT/results-$name.jsonl"
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
    if timeout 60 ${PYTHON:-python} -c 'import torch; torch.ones(9, device="cuda").sum().item()'; then
        echo "The multi-process service works." >&2
    else
        echo "No multi-process service; the runs take turns on the GPU." >&2
        echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1 || true
        trap - EXIT
        unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    fi
}
case ${1:-} in
smoke) # its runs are kept apart, so that its records are not taken for results
    mkdir -p "$WORK/cache" "$WORK/smoke"
    ln -sfn ../cache "$WORK/smoke/cache"
    WORK=$WORK/smoke
    share_the_gpu
    run smoke table-a mt lm sparsity-nli copying --size mini --steps 5 --only '[as]t*' --parallel "${PARALLEL:-5}"
    ;;
base) run base table-a --size base --tokens "${TOKENS:-40M}" --parallel "${PARALLEL:-2}" ;;
small)
    share_the_gpu
    run small table-a --size small --parallel "${PARALLEL:-2}"
    ;;
mini)
    share_the_gpu
    run mini table-a --size mini --seeds 3 --parallel "${PARALLEL:-5}" --budget-seconds "${SECONDS_LEFT:-480}"
    ;;
sparse)
    share_the_gpu
    run sparse mt lm sparsity-nli copying --size mini --parallel "${PARALLEL:-5}" \
        --budget-seconds "${SECONDS_LEFT:-500}"
    ;;
*)
    echo "usage: DATA=... OUT=... sh benchmarks/experiments_gpu.sh smoke|base|small|mini|sparse" >&2
    exit 2
    ;;
esac
