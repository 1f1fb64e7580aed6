# pyright: reportMissingImports=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportCallIssue=false, reportOptionalMemberAccess=false
"""Triton kernels, forward: tiles of rows (strips and columns), listed entries, and rows that see everything.

All three keep the running maximum and sum of the softmax in base 2 (Milakov and Gimelshein 2018; Dao et al. 2022) and
end with ``_finish``: a row's output and log-sum-exp, merged with what an earlier launch left there.

Tensors are (batch, heads, n, D) with any strides but a last one of 1; program axis 1 is batch · heads. ``group`` query
heads share a key head, which is never copied.
"""

import triton
import triton.language as tl

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)
LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def kept(seed, threshold, bh, row, key):
    """Dropout: a pair survives when its own Philox word, from (row, key, batch·heads + head), reaches the threshold."""
    c0 = row + key * 0
    c1 = key + row * 0
    word, _, _, _ = tl.philox(tl.cast(seed, tl.int64), c0, c1, c0 * 0 + bh, c0 * 0)
    return word.to(tl.int64) >= threshold


@triton.jit
def pairs_of_strip(row, key, lo, hi, pad_ptr, n, MODULUS: tl.constexpr, SKIP: tl.constexpr, PAD: tl.constexpr):
    """Which pairs of a tile belong to the strip: ``row``, ``lo``, ``hi`` run along one axis, ``key`` along another."""
    keep = (key >= lo) & (key <= hi)
    if SKIP > 0:
        keep = keep & ((key - row) % SKIP != 0)
    if PAD:
        keep = keep & (tl.load(pad_ptr + key, mask=key < n, other=0) != 0)
    return keep


@triton.jit
def pairs_of_columns(
    row, key, valid, lo, hi, pad_ptr,
    MODULUS: tl.constexpr, SKIP: tl.constexpr, CAUSAL: tl.constexpr, PAD: tl.constexpr,
):  # fmt: skip
    """Which pairs with listed columns count: not those of the strip, nor those of the residue class."""
    held = (key >= lo) & (key <= hi)
    if MODULUS > 1:
        held = held & ((key - row) % MODULUS == 0)
    keep = valid & (held == 0)
    if SKIP > 0:
        keep = keep & ((key - row) % SKIP != 0)
    if CAUSAL:
        keep = keep & (key <= row)
    if PAD:
        keep = keep & (tl.load(pad_ptr + key, mask=valid, other=0) != 0)
    return keep


@triton.jit
def _absorb(
    acc, total, top, q, k, v, keep, row, key, scale, seed, threshold, gain, bh,
    MASKED: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One tile of keys enters the running softmax of a tile of rows.

    ``scale`` is positive and includes log2(e): the maximum is scaled once per row, and an exponent is one multiply-add.
    """
    s = tl.dot(q, tl.trans(k), input_precision=PRECISION)
    if MASKED:
        s = tl.where(keep, s, float("-inf"))
    higher = tl.maximum(top, tl.max(s, 1) * scale)
    anchor = higher
    if MASKED:  # a row that has seen no key yet: −inf − −inf would be NaN
        anchor = tl.where(higher == float("-inf"), 0.0, higher)
    p = tl.exp2(s * scale - anchor[:, None])
    fade = tl.exp2(top - anchor)
    total = total * fade + tl.sum(p, 1)
    if DROPOUT:
        p = tl.where(kept(seed, threshold, bh, row[:, None], key[None, :]), p * gain, 0.0)
    acc = tl.dot(p.to(v.dtype), v, acc * fade[:, None], input_precision=PRECISION)
    return acc, total, higher


@triton.jit
def _finish(acc, total, top, o_ptrs, l_ptrs, row_mask, full_mask, ACCUMULATE: tl.constexpr):
    """Write output and log-sum-exp; with ACCUMULATE merge with what is there.

    Merging: with Z = 2^a + 2^b the merged output is (2^a·o_a + 2^b·o_b)/Z; a row without keys has a = −inf, weight 0.
    """
    empty = total == 0.0
    out = acc / tl.where(empty, 1.0, total)[:, None]
    own = tl.where(empty, float("-inf"), top + tl.log2(tl.where(empty, 1.0, total)))
    if ACCUMULATE:
        before = tl.load(l_ptrs, mask=row_mask, other=0.0) * LOG2E
        high = tl.maximum(before, own)
        high = tl.where(high == float("-inf"), 0.0, high)
        w_before, w_own = tl.exp2(before - high), tl.exp2(own - high)
        z = w_before + w_own
        both_empty = z == 0.0
        z = tl.where(both_empty, 1.0, z)
        earlier = tl.load(o_ptrs, mask=full_mask, other=0.0).to(tl.float32)
        out = (earlier * w_before[:, None] + out * w_own[:, None]) / z[:, None]
        own = tl.where(both_empty, float("-inf"), high + tl.log2(z))
    tl.store(l_ptrs, own * LN2, mask=row_mask)
    tl.store(o_ptrs, out.to(o_ptrs.dtype.element_ty), mask=full_mask)


@triton.jit
def _strip_range(
    acc, total, top, q, row, lo, hi, k_base, v_base, sk, sv, base, start, stop, pad_ptr, n,
    scale, seed, threshold, gain, bh,
    D: tl.constexpr, MODULUS: tl.constexpr, SKIP: tl.constexpr, PAD: tl.constexpr, DROPOUT: tl.constexpr,
    MASKED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Absorb the keys at positions start … stop−1 of the class (token = base + position · MODULUS)."""
    dim = tl.arange(0, BLOCK_D)
    for first in range(start, stop, BLOCK_N):
        key = base + (first + tl.arange(0, BLOCK_N)) * MODULUS
        if MASKED or (BLOCK_D != D):
            inside = (key[:, None] < n) & (dim[None, :] < D)
            k = tl.load(k_base + key[:, None] * sk + dim[None, :], mask=inside, other=0.0)
            v = tl.load(v_base + key[:, None] * sv + dim[None, :], mask=inside, other=0.0)
        else:
            k = tl.load(k_base + key[:, None] * sk + dim[None, :])
            v = tl.load(v_base + key[:, None] * sv + dim[None, :])
        keep = row[:, None] == row[:, None]
        if MASKED:
            keep = pairs_of_strip(row[:, None], key[None, :], lo[:, None], hi[:, None], pad_ptr, n, MODULUS, SKIP, PAD)
        acc, total, top = _absorb(
            acc, total, top, q, k, v, keep, row, key, scale, seed, threshold, gain, bh, MASKED, DROPOUT, PRECISION
        )
    return acc, total, top


@triton.jit
def _columns_range(
    acc, total, top, q, row, lo, hi, k_base, v_base, sk, sv, cols, start, stop, pad_ptr,
    scale, seed, threshold, gain, bh,
    D: tl.constexpr, EX_MODULUS: tl.constexpr, SKIP: tl.constexpr, CAUSAL: tl.constexpr, PAD: tl.constexpr,
    STEP: tl.constexpr, DROPOUT: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Absorb the listed columns start … stop−1; STEP > 0 says that they are cols[0] + STEP · index."""
    dim = tl.arange(0, BLOCK_D)
    for first in range(start, stop, BLOCK_N):
        c = first + tl.arange(0, BLOCK_N)
        valid = c < stop
        if STEP > 0:
            key = tl.load(cols) + c * STEP
        elif MASKED:
            key = tl.load(cols + c, mask=valid, other=0)
        else:
            key = tl.load(cols + c)
        if MASKED or (BLOCK_D != D):
            inside = valid[:, None] & (dim[None, :] < D)
            k = tl.load(k_base + key[:, None] * sk + dim[None, :], mask=inside, other=0.0)
            v = tl.load(v_base + key[:, None] * sv + dim[None, :], mask=inside, other=0.0)
        else:
            k = tl.load(k_base + key[:, None] * sk + dim[None, :])
            v = tl.load(v_base + key[:, None] * sv + dim[None, :])
        keep = valid[None, :]
        if MASKED:
            keep = pairs_of_columns(
                row[:, None], key[None, :], valid[None, :], lo[:, None], hi[:, None], pad_ptr,
                EX_MODULUS, SKIP, CAUSAL, PAD,
            )  # fmt: skip
        acc, total, top = _absorb(
            acc, total, top, q, k, v, keep, row, key, scale, seed, threshold, gain, bh, MASKED, DROPOUT, PRECISION
        )
    return acc, total, top


@triton.jit
def tiles_forward(
    q_ptr, k_ptr, v_ptr, o_ptr, l_ptr, tiles, lo_ptr, hi_ptr, cols, listed, pad_ptr,
    qb, qh, sq, kb, kh, sk, vb, vh, sv, ob, oh, so,
    heads, group, n, scale, seed, threshold, gain,
    D: tl.constexpr, MODULUS: tl.constexpr, SKIP: tl.constexpr, EX_MODULUS: tl.constexpr, CAUSAL: tl.constexpr,
    STRIP: tl.constexpr, COLUMNS: tl.constexpr, PAD: tl.constexpr, DROPOUT: tl.constexpr, ACCUMULATE: tl.constexpr,
    OWN: tl.constexpr, EDGES: tl.constexpr, STEP: tl.constexpr, WHOLE_MASKED: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One tile of rows: its range of the strip (masked, whole, masked), then its listed columns (whole, masked).

    OWN: the strip is {k}, a product of vectors instead of a tile; it leaves out the tokens that are ``listed``.
    EDGES: some tile of the launch has a masked range.
    """
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
    lo = tl.load(lo_ptr + row, mask=row_mask, other=1)
    hi = tl.load(hi_ptr + row, mask=row_mask, other=0)
    k_base, v_base, pad = k_ptr + b * kb + (h // group) * kh, v_ptr + b * vb + (h // group) * vh, pad_ptr + b * n
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    if OWN:
        k = tl.load(k_base + row[:, None] * sk + dim[None, :], mask=full_mask, other=0.0).to(tl.float32)
        v = tl.load(v_base + row[:, None] * sv + dim[None, :], mask=full_mask, other=0.0).to(tl.float32)
        alone = tl.load(listed + row, mask=row_mask, other=1) == 0
        if PAD:
            alone = alone & (tl.load(pad + row, mask=row_mask, other=0) != 0)
        top = tl.where(alone, tl.sum(q.to(tl.float32) * k, 1) * scale, float("-inf"))
        total = tl.where(alone, 1.0, 0.0)
        used = total
        if DROPOUT:
            used = tl.where(kept(seed, threshold, bh, row, row), total * gain, 0.0)
        acc = v * used[:, None]
        lo, hi = lo * 0 + 1, hi * 0  # the columns leave out nothing
    if STRIP:
        start, whole, part, stop = tl.load(tile + 3), tl.load(tile + 4), tl.load(tile + 5), tl.load(tile + 6)
        if EDGES:
            acc, total, top = _strip_range(
                acc, total, top, q, row, lo, hi, k_base, v_base, sk, sv, base, start, whole, pad, n,
                scale, seed, threshold, gain, bh, D, MODULUS, SKIP, PAD, DROPOUT, True, PRECISION, BLOCK_N, BLOCK_D,
            )  # fmt: skip
        acc, total, top = _strip_range(
            acc, total, top, q, row, lo, hi, k_base, v_base, sk, sv, base, whole, part, pad, n,
            scale, seed, threshold, gain, bh, D, MODULUS, SKIP, PAD, DROPOUT, WHOLE_MASKED, PRECISION,
            BLOCK_N, BLOCK_D,
        )  # fmt: skip
        if EDGES:
            acc, total, top = _strip_range(
                acc, total, top, q, row, lo, hi, k_base, v_base, sk, sv, base, part, stop, pad, n,
                scale, seed, threshold, gain, bh, D, MODULUS, SKIP, PAD, DROPOUT, True, PRECISION, BLOCK_N, BLOCK_D,
            )  # fmt: skip
    if COLUMNS:
        first, whole_cols, last = tl.load(tile + 7), tl.load(tile + 9), tl.load(tile + 8)
        acc, total, top = _columns_range(
            acc, total, top, q, row, lo, hi, k_base, v_base, sk, sv, cols, first, whole_cols, pad,
            scale, seed, threshold, gain, bh, D, EX_MODULUS, SKIP, CAUSAL, PAD, STEP, DROPOUT, PAD, PRECISION,
            BLOCK_N, BLOCK_D,
        )  # fmt: skip
        acc, total, top = _columns_range(
            acc, total, top, q, row, lo, hi, k_base, v_base, sk, sv, cols, whole_cols, last, pad,
            scale, seed, threshold, gain, bh, D, EX_MODULUS, SKIP, CAUSAL, PAD, STEP, DROPOUT, True, PRECISION,
            BLOCK_N, BLOCK_D,
        )  # fmt: skip
    _finish(
        acc, total, top, o_ptr + b * ob + h * oh + row[:, None] * so + dim[None, :],
        l_ptr + bh.to(tl.int64) * n + row, row_mask, full_mask, ACCUMULATE,
    )  # fmt: skip


@triton.jit
def entries_forward(
    q_ptr, k_ptr, v_ptr, o_ptr, l_ptr, rows, indptr, indices, pad_ptr,
    qb, qh, sq, kb, kh, sk, vb, vh, sv, ob, oh, so,
    heads, group, n, scale, seed, threshold, gain,
    D: tl.constexpr, PAD: tl.constexpr, DROPOUT: tl.constexpr, ACCUMULATE: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One row and head: gather its keys, a block of entries at a time."""
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    i = tl.program_id(0)
    row = tl.load(rows + i)
    start, stop = tl.load(indptr + i), tl.load(indptr + i + 1)
    dim = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + b * qb + h * qh + row * sq + dim, mask=dim < D, other=0.0).to(tl.float32) * scale
    k_base, v_base = k_ptr + b * kb + (h // group) * kh, v_ptr + b * vb + (h // group) * vh
    acc = tl.zeros((BLOCK_D,), tl.float32)
    total, top = 0.0, float("-inf")
    for first in range(start, stop, BLOCK_E):
        e = first + tl.arange(0, BLOCK_E)
        valid = e < stop
        key = tl.load(indices + e, mask=valid, other=0)
        if PAD:
            valid = valid & (tl.load(pad_ptr + b * n + key, mask=valid, other=0) != 0)
        inside = valid[:, None] & (dim[None, :] < D)
        k = tl.load(k_base + key[:, None] * sk + dim[None, :], mask=inside, other=0.0).to(tl.float32)
        v = tl.load(v_base + key[:, None] * sv + dim[None, :], mask=inside, other=0.0).to(tl.float32)
        s = tl.where(valid, tl.sum(k * q[None, :], 1), float("-inf"))
        higher = tl.maximum(top, tl.max(s, 0))
        anchor = tl.where(higher == float("-inf"), 0.0, higher)
        p = tl.exp2(s - anchor)
        fade = tl.exp2(top - anchor)
        total = total * fade + tl.sum(p, 0)
        if DROPOUT:
            p = tl.where(kept(seed, threshold, bh, row, key), p * gain, 0.0)
        acc = acc * fade + tl.sum(p[:, None] * v, 0)
        top = higher
    one = tl.arange(0, 1)
    _finish(
        acc[None, :], total + tl.zeros((1,), tl.float32), top + tl.zeros((1,), tl.float32),
        o_ptr + b * ob + h * oh + row * so + one[:, None] + dim[None, :], l_ptr + bh.to(tl.int64) * n + row + one,
        one < 1, (one[:, None] < 1) & (dim[None, :] < D), ACCUMULATE,
    )  # fmt: skip


@triton.jit
def rows_forward(
    q_ptr, k_ptr, v_ptr, o_part, l_part, rows, pad_ptr,
    qb, qh, sq, kb, kh, sk, vb, vh, sv,
    heads, group, n, count, chunk, scale, seed, threshold, gain,
    D: tl.constexpr, CAUSAL: tl.constexpr, PAD: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Rows that see everything, against one chunk of the keys; the chunks are merged afterwards.

    ``o_part`` is (chunks, batch·heads, count, D), ``l_part`` without the last axis, both float32.
    """
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    tiles = tl.cdiv(count, BLOCK_M)
    part, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    at = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    row_mask = at < count
    row = tl.load(rows + at, mask=row_mask, other=0)
    dim = tl.arange(0, BLOCK_D)
    full_mask = row_mask[:, None] & (dim[None, :] < D)
    q = tl.load(q_ptr + b * qb + h * qh + row[:, None] * sq + dim[None, :], mask=full_mask, other=0.0)
    k_base, v_base = k_ptr + b * kb + (h // group) * kh, v_ptr + b * vb + (h // group) * vh
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    for first in range(part * chunk, tl.minimum((part + 1) * chunk, n), BLOCK_N):
        key = first + tl.arange(0, BLOCK_N)
        valid = key < n
        inside = valid[:, None] & (dim[None, :] < D)
        k = tl.load(k_base + key[:, None] * sk + dim[None, :], mask=inside, other=0.0)
        v = tl.load(v_base + key[:, None] * sv + dim[None, :], mask=inside, other=0.0)
        keep = row_mask[:, None] & valid[None, :]
        if CAUSAL:
            keep = keep & (key[None, :] <= row[:, None])
        if PAD:
            keep = keep & (tl.load(pad_ptr + b * n + key, mask=valid, other=0) != 0)[None, :]
        acc, total, top = _absorb(
            acc, total, top, q, k, v, keep, row, key, scale, seed, threshold, gain, bh, True, DROPOUT, PRECISION
        )
    place = (part.to(tl.int64) * tl.num_programs(1) + bh) * count + at
    _finish(acc, total, top, o_part + place[:, None] * D + dim[None, :], l_part + place, row_mask, full_mask, False)


@triton.jit
def rows_merge(
    o_part, l_part, o_ptr, l_ptr, rows, ob, oh, so, heads, n, count, chunks,
    D: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Merge the chunks of one full row."""
    i, bh = tl.program_id(0), tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    row = tl.load(rows + i)
    part = tl.arange(0, BLOCK_C)
    dim = tl.arange(0, BLOCK_D)
    place = (part.to(tl.int64) * tl.num_programs(1) + bh) * count + i
    l = tl.load(l_part + place, mask=part < chunks, other=float("-inf")) * LOG2E
    o = tl.load(
        o_part + place[:, None] * D + dim[None, :], mask=(part[:, None] < chunks) & (dim[None, :] < D), other=0.0
    )
    top = tl.max(l, 0)
    anchor = tl.where(top == float("-inf"), 0.0, top)
    weight = tl.exp2(l - anchor)
    total = tl.sum(weight, 0)
    empty = total == 0.0
    total = tl.where(empty, 1.0, total)
    merged = tl.sum(o * weight[:, None], 0) / total
    tl.store(o_ptr + b * ob + h * oh + row * so + dim, merged.to(o_ptr.dtype.element_ty), mask=dim < D)
    tl.store(l_ptr + bh.to(tl.int64) * n + row, tl.where(empty, float("-inf"), (anchor + tl.log2(total)) * LN2))
