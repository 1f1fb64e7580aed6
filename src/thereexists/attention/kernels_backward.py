# pyright: reportMissingImports=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportCallIssue=false, reportOptionalMemberAccess=false
"""Triton kernels, backward. Every launch gets the *merged* output and log-sum-exp, so its P is the true one.

With P = exp(S − LSE) over the whole row, D = rowsum(dO ∘ O), dS = P ∘ (dO Vᵀ − D): each pair's share of dQ, dK, dV
depends on nothing but that pair and these row quantities, so pieces add up. A row that a piece must leave alone (it is
computed elsewhere, or empty) has LSE = +inf here, and then P = 0.
"""

import triton
import triton.language as tl

from thereexists.attention.kernels_forward import LOG2E, kept, pairs_of_columns, pairs_of_strip


@triton.jit
def row_dots(
    do_ptr, o_ptr, d_ptr, gb, gh, sg, ob, oh, so, heads, n, D: tl.constexpr, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr
):
    """D = rowsum(dO ∘ O), float32."""
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dim = tl.arange(0, BLOCK_D)
    mask = (row[:, None] < n) & (dim[None, :] < D)
    do = tl.load(do_ptr + b * gb + h * gh + row[:, None] * sg + dim[None, :], mask=mask, other=0.0).to(tl.float32)
    o = tl.load(o_ptr + b * ob + h * oh + row[:, None] * so + dim[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(d_ptr + bh.to(tl.int64) * n + row, tl.sum(do * o, 1), mask=row < n)


@triton.jit
def _add(ptrs, value, mask, ACCUMULATE: tl.constexpr):
    if ACCUMULATE:
        value += tl.load(ptrs, mask=mask, other=0.0).to(tl.float32)
    tl.store(ptrs, value.to(ptrs.dtype.element_ty), mask=mask)


@triton.jit
def _dq_of(
    dq, q, k, v, do, lse, delta, keep, row, key, scale, seed, threshold, gain, bh,
    MASKED: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Rows × keys: dq += dS · K, without the final scale."""
    p = tl.exp2(tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale - lse[:, None])
    if MASKED:
        p = tl.where(keep, p, 0.0)
    dp = tl.dot(do, tl.trans(v), input_precision=PRECISION)
    if DROPOUT:
        dp = tl.where(kept(seed, threshold, bh, row[:, None], key[None, :]), dp * gain, 0.0)
    ds = p * (dp - delta[:, None])
    return tl.dot(ds.to(k.dtype), k, dq, input_precision=PRECISION)


@triton.jit
def _dkdv_of(
    dk, dv, q, k, v, do, lse, delta, keep, row, key, scale, seed, threshold, gain, bh,
    MASKED: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Keys × rows: dv += Pᵀ · dO and dk += dSᵀ · Q, without the final scale."""
    p = tl.exp2(tl.dot(k, tl.trans(q), input_precision=PRECISION) * scale - lse[None, :])
    if MASKED:
        p = tl.where(keep, p, 0.0)
    dp = tl.dot(v, tl.trans(do), input_precision=PRECISION)
    used = p
    if DROPOUT:
        survives = kept(seed, threshold, bh, row[None, :], key[:, None])
        dp = tl.where(survives, dp * gain, 0.0)
        used = tl.where(survives, p * gain, 0.0)
    dv = tl.dot(used.to(do.dtype), do, dv, input_precision=PRECISION)
    ds = p * (dp - delta[None, :])
    dk = tl.dot(ds.to(q.dtype), q, dk, input_precision=PRECISION)
    return dk, dv


@triton.jit
def tiles_dq(
    q_ptr, k_ptr, v_ptr, do_ptr, l_ptr, d_ptr, dq_ptr, tiles, lo_ptr, hi_ptr, cols, pad_ptr,
    qb, qh, sq, kb, kh, sk, vb, vh, sv, gb, gh, sg, ob, oh, so,
    heads, group, n, scale, seed, threshold, gain, final,
    D: tl.constexpr, MODULUS: tl.constexpr, SKIP: tl.constexpr, EX_MODULUS: tl.constexpr, CAUSAL: tl.constexpr,
    STRIP: tl.constexpr, COLUMNS: tl.constexpr, PAD: tl.constexpr, DROPOUT: tl.constexpr, ACCUMULATE: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """The forward's tiles once more, for dQ."""
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    tile = tiles + tl.program_id(0) * 10
    row0, rows, base = tl.load(tile), tl.load(tile + 1), tl.load(tile + 2)
    at = tl.arange(0, BLOCK_M)
    row = row0 + at * MODULUS
    dim = tl.arange(0, BLOCK_D)
    row_mask = at < rows
    full_mask = row_mask[:, None] & (dim[None, :] < D)
    q = tl.load(q_ptr + b * qb + h * qh + row[:, None] * sq + dim[None, :], mask=full_mask, other=0.0)
    do = tl.load(do_ptr + b * gb + h * gh + row[:, None] * sg + dim[None, :], mask=full_mask, other=0.0)
    lse = tl.load(l_ptr + bh.to(tl.int64) * n + row, mask=row_mask, other=float("inf")) * LOG2E
    delta = tl.load(d_ptr + bh.to(tl.int64) * n + row, mask=row_mask, other=0.0)
    lo = tl.load(lo_ptr + row, mask=row_mask, other=1)
    hi = tl.load(hi_ptr + row, mask=row_mask, other=0)
    k_base, v_base, pad = k_ptr + b * kb + (h // group) * kh, v_ptr + b * vb + (h // group) * vh, pad_ptr + b * n
    dq = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    if STRIP:
        for first in range(tl.load(tile + 3), tl.load(tile + 6), BLOCK_N):
            key = base + (first + tl.arange(0, BLOCK_N)) * MODULUS
            inside = (key[:, None] < n) & (dim[None, :] < D)
            k = tl.load(k_base + key[:, None] * sk + dim[None, :], mask=inside, other=0.0)
            v = tl.load(v_base + key[:, None] * sv + dim[None, :], mask=inside, other=0.0)
            keep = pairs_of_strip(row[:, None], key[None, :], lo[:, None], hi[:, None], pad, n, MODULUS, SKIP, PAD)
            dq = _dq_of(
                dq, q, k, v, do, lse, delta, keep, row, key, scale, seed, threshold, gain, bh, True, DROPOUT, PRECISION
            )
    if COLUMNS:
        for first in range(tl.load(tile + 7), tl.load(tile + 8), BLOCK_N):
            c = first + tl.arange(0, BLOCK_N)
            valid = c < tl.load(tile + 8)
            key = tl.load(cols + c, mask=valid, other=0)
            inside = valid[:, None] & (dim[None, :] < D)
            k = tl.load(k_base + key[:, None] * sk + dim[None, :], mask=inside, other=0.0)
            v = tl.load(v_base + key[:, None] * sv + dim[None, :], mask=inside, other=0.0)
            keep = pairs_of_columns(
                row[:, None], key[None, :], valid[None, :], lo[:, None], hi[:, None], pad, EX_MODULUS, SKIP, CAUSAL, PAD
            )
            dq = _dq_of(
                dq, q, k, v, do, lse, delta, keep, row, key, scale, seed, threshold, gain, bh, True, DROPOUT, PRECISION
            )
    _add(dq_ptr + b * ob + h * oh + row[:, None] * so + dim[None, :], dq * final, full_mask, ACCUMULATE)


@triton.jit
def strip_dkdv(
    q_ptr, k_ptr, v_ptr, do_ptr, l_ptr, d_ptr, dk_ptr, dv_ptr, tiles, lo_ptr, hi_ptr, pad_ptr,
    qb, qh, sq, kb, kh, sk, vb, vh, sv, gb, gh, sg, db, dh, sd, eb, eh, se,
    heads, group, n, scale, seed, threshold, gain, final,
    D: tl.constexpr, MODULUS: tl.constexpr, SKIP: tl.constexpr, PAD: tl.constexpr, DROPOUT: tl.constexpr,
    ACCUMULATE: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One tile of keys of a strip against the range of rows that see it."""
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    tile = tiles + tl.program_id(0) * 5
    key0, keys, base = tl.load(tile), tl.load(tile + 1), tl.load(tile + 2)
    at = tl.arange(0, BLOCK_N)
    key = key0 + at * MODULUS
    dim = tl.arange(0, BLOCK_D)
    key_mask = at < keys
    full_mask = key_mask[:, None] & (dim[None, :] < D)
    k = tl.load(k_ptr + b * kb + (h // group) * kh + key[:, None] * sk + dim[None, :], mask=full_mask, other=0.0)
    v = tl.load(v_ptr + b * vb + (h // group) * vh + key[:, None] * sv + dim[None, :], mask=full_mask, other=0.0)
    dk = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    for first in range(tl.load(tile + 3), tl.load(tile + 4), BLOCK_M):
        row = base + (first + tl.arange(0, BLOCK_M)) * MODULUS
        row_mask = row < n
        inside = row_mask[:, None] & (dim[None, :] < D)
        q = tl.load(q_ptr + b * qb + h * qh + row[:, None] * sq + dim[None, :], mask=inside, other=0.0)
        do = tl.load(do_ptr + b * gb + h * gh + row[:, None] * sg + dim[None, :], mask=inside, other=0.0)
        lse = tl.load(l_ptr + bh.to(tl.int64) * n + row, mask=row_mask, other=float("inf")) * LOG2E
        delta = tl.load(d_ptr + bh.to(tl.int64) * n + row, mask=row_mask, other=0.0)
        lo = tl.load(lo_ptr + row, mask=row_mask, other=1)
        hi = tl.load(hi_ptr + row, mask=row_mask, other=0)
        keep = pairs_of_strip(
            row[None, :], key[:, None], lo[None, :], hi[None, :], pad_ptr + b * n, n, MODULUS, SKIP, PAD
        )
        dk, dv = _dkdv_of(
            dk, dv, q, k, v, do, lse, delta, keep, row, key, scale, seed, threshold, gain, bh, True, DROPOUT, PRECISION
        )
    _add(dk_ptr + b * db + h * dh + key[:, None] * sd + dim[None, :], dk * final, full_mask, ACCUMULATE)
    _add(dv_ptr + b * eb + h * eh + key[:, None] * se + dim[None, :], dv, full_mask, ACCUMULATE)


@triton.jit
def columns_dkdv(
    q_ptr, k_ptr, v_ptr, do_ptr, l_ptr, d_ptr, dk_ptr, dv_ptr, runs, lo_ptr, hi_ptr, cols, pad_ptr,
    qb, qh, sq, kb, kh, sk, vb, vh, sv, gb, gh, sg,
    heads, group, n, scale, seed, threshold, gain, final,
    D: tl.constexpr, SKIP: tl.constexpr, EX_MODULUS: tl.constexpr, CAUSAL: tl.constexpr,
    PAD: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """A block of listed columns against a run of rows; runs share columns, so dk, dv (float32) are added atomically."""
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    run = runs + tl.program_id(0) * 4
    start, stop, c0, c1 = tl.load(run), tl.load(run + 1), tl.load(run + 2), tl.load(run + 3)
    c = c0 + tl.arange(0, BLOCK_N)
    valid = c < c1
    key = tl.load(cols + c, mask=valid, other=0)
    dim = tl.arange(0, BLOCK_D)
    full_mask = valid[:, None] & (dim[None, :] < D)
    k = tl.load(k_ptr + b * kb + (h // group) * kh + key[:, None] * sk + dim[None, :], mask=full_mask, other=0.0)
    v = tl.load(v_ptr + b * vb + (h // group) * vh + key[:, None] * sv + dim[None, :], mask=full_mask, other=0.0)
    dk = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    for first in range(start, stop, BLOCK_M):
        row = first + tl.arange(0, BLOCK_M)
        row_mask = row < stop
        inside = row_mask[:, None] & (dim[None, :] < D)
        q = tl.load(q_ptr + b * qb + h * qh + row[:, None] * sq + dim[None, :], mask=inside, other=0.0)
        do = tl.load(do_ptr + b * gb + h * gh + row[:, None] * sg + dim[None, :], mask=inside, other=0.0)
        lse = tl.load(l_ptr + bh.to(tl.int64) * n + row, mask=row_mask, other=float("inf")) * LOG2E
        delta = tl.load(d_ptr + bh.to(tl.int64) * n + row, mask=row_mask, other=0.0)
        lo = tl.load(lo_ptr + row, mask=row_mask, other=1)
        hi = tl.load(hi_ptr + row, mask=row_mask, other=0)
        keep = pairs_of_columns(
            row[None, :], key[:, None], valid[:, None], lo[None, :], hi[None, :], pad_ptr + b * n,
            EX_MODULUS, SKIP, CAUSAL, PAD,
        )  # fmt: skip
        dk, dv = _dkdv_of(
            dk, dv, q, k, v, do, lse, delta, keep, row, key, scale, seed, threshold, gain, bh, True, DROPOUT, PRECISION
        )
    place = (bh.to(tl.int64) * n + key)[:, None] * D + dim[None, :]
    tl.atomic_add(dk_ptr + place, dk * final, mask=full_mask)
    tl.atomic_add(dv_ptr + place, dv, mask=full_mask)


@triton.jit
def entries_dq(
    q_ptr, k_ptr, v_ptr, do_ptr, l_ptr, d_ptr, dq_ptr, rows, indptr, indices, pad_ptr,
    qb, qh, sq, kb, kh, sk, vb, vh, sv, gb, gh, sg, ob, oh, so,
    heads, group, n, scale, seed, threshold, gain, final,
    D: tl.constexpr, PAD: tl.constexpr, DROPOUT: tl.constexpr, ACCUMULATE: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One row and head: dQ from its listed keys."""
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    i = tl.program_id(0)
    row = tl.load(rows + i)
    start, stop = tl.load(indptr + i), tl.load(indptr + i + 1)
    dim = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + b * qb + h * qh + row * sq + dim, mask=dim < D, other=0.0).to(tl.float32) * scale
    do = tl.load(do_ptr + b * gb + h * gh + row * sg + dim, mask=dim < D, other=0.0).to(tl.float32)
    lse = tl.load(l_ptr + bh.to(tl.int64) * n + row) * LOG2E
    delta = tl.load(d_ptr + bh.to(tl.int64) * n + row)
    k_base, v_base = k_ptr + b * kb + (h // group) * kh, v_ptr + b * vb + (h // group) * vh
    dq = tl.zeros((BLOCK_D,), tl.float32)
    for first in range(start, stop, BLOCK_E):
        e = first + tl.arange(0, BLOCK_E)
        valid = e < stop
        key = tl.load(indices + e, mask=valid, other=0)
        if PAD:
            valid = valid & (tl.load(pad_ptr + b * n + key, mask=valid, other=0) != 0)
        inside = valid[:, None] & (dim[None, :] < D)
        k = tl.load(k_base + key[:, None] * sk + dim[None, :], mask=inside, other=0.0).to(tl.float32)
        v = tl.load(v_base + key[:, None] * sv + dim[None, :], mask=inside, other=0.0).to(tl.float32)
        p = tl.where(valid, tl.exp2(tl.sum(k * q[None, :], 1) - lse), 0.0)
        dp = tl.sum(v * do[None, :], 1)
        if DROPOUT:
            dp = tl.where(kept(seed, threshold, bh, row, key), dp * gain, 0.0)
        dq += tl.sum((p * (dp - delta))[:, None] * k, 0)
    _add(dq_ptr + b * ob + h * oh + row * so + dim, dq * final, dim < D, ACCUMULATE)


@triton.jit
def entries_dkdv(
    q_ptr, k_ptr, v_ptr, do_ptr, l_ptr, d_ptr, dk_ptr, dv_ptr, keys, indptr, indices, pad_ptr,
    qb, qh, sq, kb, kh, sk, vb, vh, sv, gb, gh, sg, db, dh, sd, eb, eh, se,
    heads, group, n, scale, seed, threshold, gain, final,
    D: tl.constexpr, PAD: tl.constexpr, DROPOUT: tl.constexpr, ACCUMULATE: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One key and head: dK, dV from the rows that list it (the transposed entries): no atomics, same sum every time."""
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    i = tl.program_id(0)
    key = tl.load(keys + i)
    start, stop = tl.load(indptr + i), tl.load(indptr + i + 1)
    dim = tl.arange(0, BLOCK_D)
    k = tl.load(k_ptr + b * kb + (h // group) * kh + key * sk + dim, mask=dim < D, other=0.0).to(tl.float32) * scale
    v = tl.load(v_ptr + b * vb + (h // group) * vh + key * sv + dim, mask=dim < D, other=0.0).to(tl.float32)
    q_base, g_base = q_ptr + b * qb + h * qh, do_ptr + b * gb + h * gh
    if PAD:  # no row sees a padded key
        stop = tl.where(tl.load(pad_ptr + b * n + key) != 0, stop, start)
    dk = tl.zeros((BLOCK_D,), tl.float32)
    dv = tl.zeros((BLOCK_D,), tl.float32)
    for first in range(start, stop, BLOCK_E):
        e = first + tl.arange(0, BLOCK_E)
        valid = e < stop
        row = tl.load(indices + e, mask=valid, other=0)
        inside = valid[:, None] & (dim[None, :] < D)
        q = tl.load(q_base + row[:, None] * sq + dim[None, :], mask=inside, other=0.0).to(tl.float32)
        do = tl.load(g_base + row[:, None] * sg + dim[None, :], mask=inside, other=0.0).to(tl.float32)
        lse = tl.load(l_ptr + bh.to(tl.int64) * n + row, mask=valid, other=float("inf")) * LOG2E
        delta = tl.load(d_ptr + bh.to(tl.int64) * n + row, mask=valid, other=0.0)
        p = tl.exp2(tl.sum(q * k[None, :], 1) - lse)
        dp = tl.sum(do * v[None, :], 1)
        used = p
        if DROPOUT:
            survives = kept(seed, threshold, bh, row, key)
            dp = tl.where(survives, dp * gain, 0.0)
            used = tl.where(survives, p * gain, 0.0)
        dv += tl.sum(used[:, None] * do, 0)
        dk += tl.sum((p * (dp - delta))[:, None] * q, 0)
    _add(dk_ptr + b * db + h * dh + key * sd + dim, dk * final, dim < D, ACCUMULATE)
    _add(dv_ptr + b * eb + h * eh + key * se + dim, dv, dim < D, ACCUMULATE)


@triton.jit
def rows_backward(
    q_ptr, k_ptr, v_ptr, do_ptr, l_ptr, d_ptr, dq_ptr, dk_ptr, dv_ptr, rows, pad_ptr,
    qb, qh, sq, kb, kh, sk, vb, vh, sv, gb, gh, sg,
    heads, group, n, count, scale, seed, threshold, gain, final,
    D: tl.constexpr, CAUSAL: tl.constexpr, PAD: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """A tile of keys against the rows that see everything: dK and dV are its own, dQ is added atomically (float32)."""
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    key = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    valid = key < n
    dim = tl.arange(0, BLOCK_D)
    inside = valid[:, None] & (dim[None, :] < D)
    k = tl.load(k_ptr + b * kb + (h // group) * kh + key[:, None] * sk + dim[None, :], mask=inside, other=0.0)
    v = tl.load(v_ptr + b * vb + (h // group) * vh + key[:, None] * sv + dim[None, :], mask=inside, other=0.0)
    if PAD:
        valid = valid & (tl.load(pad_ptr + b * n + key, mask=valid, other=0) != 0)
    dk = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    for first in range(0, count, BLOCK_M):
        at = first + tl.arange(0, BLOCK_M)
        row_mask = at < count
        row = tl.load(rows + at, mask=row_mask, other=0)
        full = row_mask[:, None] & (dim[None, :] < D)
        q = tl.load(q_ptr + b * qb + h * qh + row[:, None] * sq + dim[None, :], mask=full, other=0.0)
        do = tl.load(do_ptr + b * gb + h * gh + row[:, None] * sg + dim[None, :], mask=full, other=0.0)
        lse = tl.load(l_ptr + bh.to(tl.int64) * n + row, mask=row_mask, other=float("inf")) * LOG2E
        delta = tl.load(d_ptr + bh.to(tl.int64) * n + row, mask=row_mask, other=0.0)
        keep = valid[:, None] & row_mask[None, :]
        if CAUSAL:
            keep = keep & (key[:, None] <= row[None, :])
        dk, dv = _dkdv_of(
            dk, dv, q, k, v, do, lse, delta, keep, row, key, scale, seed, threshold, gain, bh, True, DROPOUT, PRECISION
        )
        dq = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
        dq = _dq_of(
            dq, q, k, v, do, lse, delta, tl.trans(keep), row, key, scale, seed, threshold, gain, bh,
            True, DROPOUT, PRECISION,
        )  # fmt: skip
        tl.atomic_add(dq_ptr + (bh.to(tl.int64) * n + row)[:, None] * D + dim[None, :], dq * final, mask=full)
    place = (bh.to(tl.int64) * n + key)[:, None] * D + dim[None, :]
    _add(dk_ptr + place, dk * final, inside, True)
    _add(dv_ptr + place, dv, inside, True)
