# pyright: reportMissingImports=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportCallIssue=false, reportOptionalMemberAccess=false
"""Triton kernels for the one pattern that every model runs: row i sees the keys i − left … i + right, and no others.

The general kernels read the ends of a row's keys from tables. Here both ends are formulas of the row, so a tile knows
by arithmetic which keys belong to all of its rows (no mask, no bounds) and which need a look: one launch forward, one
for dQ, one for dK and dV, and no tables. ``group`` query heads share a key head, which is never copied.

For a tile of rows a … a+M−1 the keys a−left … a+M−1+right belong to some row, and a+M−1−left … a+right to all. For a
tile of keys c … c+N−1 it is the rows c−right … c+N−1+left and c+N−1−right … c+left: the same with the ends exchanged.
"""

import triton
import triton.language as tl

from thereexists.attention.kernels_forward import LN2, LOG2E


@triton.jit
def ranges(first, before, after, n, SIZE: tl.constexpr, STEP: tl.constexpr):
    """start, whole, part, stop: a tile of SIZE at ``first`` meets [start, stop), and all of it meets [whole, part).

    Whole steps of STEP lie between; where there is none, everything is in [start, whole).
    """
    start = tl.maximum(first - before, 0)
    stop = tl.minimum(first + SIZE + after, n)
    shared = tl.maximum(first + SIZE - 1 - before, start)
    ends = tl.minimum(first + after + 1, n)
    whole = start + tl.cdiv(shared - start, STEP) * STEP
    part = start + tl.maximum(ends - start, 0) // STEP * STEP
    none = part <= whole
    return start, tl.where(none, stop, whole), tl.where(none, stop, part), stop


@triton.jit
def take(base, first, stride, n, D: tl.constexpr, MASKED: tl.constexpr, SIZE: tl.constexpr, BLOCK_D: tl.constexpr):
    """Rows first … first+SIZE−1 of a (n, D) matrix; with MASKED 0 where there is none."""
    at, dim = first + tl.arange(0, SIZE), tl.arange(0, BLOCK_D)
    where = base + (at.to(tl.int64) * stride)[:, None] + dim[None, :]  # n · stride may pass 2^31
    if MASKED and (BLOCK_D != D):
        tile = tl.load(where, mask=(at[:, None] < n) & (dim[None, :] < D), other=0.0)
    elif MASKED:
        tile = tl.load(where, mask=at[:, None] < n, other=0.0)
    elif BLOCK_D != D:
        tile = tl.load(where, mask=dim[None, :] < D, other=0.0)
    else:
        tile = tl.load(where)
    return tile


@triton.jit
def _absorb(
    acc, total, top, q, row, k_base, v_base, sk, sv, start, stop, n, left, right, scale,
    D: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """The keys start … stop−1 join the softmax of the rows."""
    for first in range(start, stop, BLOCK_N):
        key = first + tl.arange(0, BLOCK_N)
        k = take(k_base, first, sk, n, D, MASKED, BLOCK_N, BLOCK_D)
        s = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        if MASKED:
            far = key[None, :] - row[:, None]
            s = tl.where((far >= -left) & (far <= right) & (key[None, :] < n), s, float("-inf"))
        higher = tl.maximum(top, tl.max(s, 1) * scale)
        anchor = higher
        if MASKED:
            anchor = tl.where(higher == float("-inf"), 0.0, higher)
        p = tl.exp2(s * scale - anchor[:, None])
        fade = tl.exp2(top - anchor)
        total = total * fade + tl.sum(p, 1)
        v = take(v_base, first, sv, n, D, MASKED, BLOCK_N, BLOCK_D)
        acc = tl.dot(p.to(v.dtype), v, acc * fade[:, None], input_precision=PRECISION)
        top = higher
    return acc, total, top


@triton.jit(do_not_specialize=["left", "right"])
def window_forward(
    q_ptr, k_ptr, v_ptr, o_ptr, l_ptr,
    qb, qh, sq, kb, kh, sk, vb, vh, sv, ob, oh, so,
    heads, group, n, left, right, scale,
    D: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One tile of rows: keys of some, keys of all, keys of some. Every row sees itself, so no softmax is empty."""
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), bh % heads
    g = (h // group).to(tl.int64)
    h = h.to(tl.int64)
    a = tl.program_id(0) * BLOCK_M
    row = a + tl.arange(0, BLOCK_M)
    q = take(q_ptr + b * qb + h * qh, a, sq, n, D, True, BLOCK_M, BLOCK_D)
    k_base = k_ptr + b * kb + g * kh
    v_base = v_ptr + b * vb + g * vh
    start, whole, part, stop = ranges(a, left, right, n, BLOCK_M, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    acc, total, top = _absorb(
        acc, total, top, q, row, k_base, v_base, sk, sv, start, whole, n, left, right, scale,
        D, True, PRECISION, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    acc, total, top = _absorb(
        acc, total, top, q, row, k_base, v_base, sk, sv, whole, part, n, left, right, scale,
        D, False, PRECISION, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    acc, total, top = _absorb(
        acc, total, top, q, row, k_base, v_base, sk, sv, part, stop, n, left, right, scale,
        D, True, PRECISION, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    dim = tl.arange(0, BLOCK_D)
    here = row < n
    out = acc / total[:, None]
    tl.store(
        o_ptr + b * ob + h * oh + row[:, None].to(tl.int64) * so + dim[None, :], out.to(o_ptr.dtype.element_ty),
        mask=here[:, None] & (dim[None, :] < D),
    )  # fmt: skip
    tl.store(l_ptr + bh.to(tl.int64) * n + row, (top + tl.log2(total)) * LN2, mask=here)


@triton.jit
def _to_keys(
    dk, dv, k, v, key, q_base, g_base, l_base, d_base, sq, sg, start, stop, n, left, right, scale,
    D: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """dV += Pᵀ·dO and dK += dSᵀ·Q from the rows start … stop−1."""
    for first in range(start, stop, BLOCK_M):
        row = first + tl.arange(0, BLOCK_M)
        q = take(q_base, first, sq, n, D, MASKED, BLOCK_M, BLOCK_D)
        if MASKED:
            lse = tl.load(l_base + row, mask=row < n, other=float("inf")) * LOG2E
            delta = tl.load(d_base + row, mask=row < n, other=0.0)
        else:
            lse = tl.load(l_base + row) * LOG2E
            delta = tl.load(d_base + row)
        p = tl.exp2(tl.dot(k, tl.trans(q), input_precision=PRECISION) * scale - lse[None, :])
        if MASKED:
            far = key[:, None] - row[None, :]
            p = tl.where((far >= -left) & (far <= right) & (key[:, None] < n), p, 0.0)
        do = take(g_base, first, sg, n, D, MASKED, BLOCK_M, BLOCK_D)
        dv = tl.dot(p.to(do.dtype), do, dv, input_precision=PRECISION)
        dp = tl.dot(v, tl.trans(do), input_precision=PRECISION)
        ds = (p * (dp - delta[None, :])).to(q.dtype)
        dk = tl.dot(ds, q, dk, input_precision=PRECISION)
    return dk, dv


@triton.jit(do_not_specialize=["left", "right"])
def window_dkdv(
    q_ptr, k_ptr, v_ptr, do_ptr, l_ptr, d_ptr, dk_ptr, dv_ptr,
    qb, qh, sq, kb, kh, sk, vb, vh, sv, gb, gh, sg, db, dh, sd, eb, eh, se,
    heads, group, n, left, right, scale, final,
    D: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One tile of keys against the rows that see it, in all query heads that share the key head: nothing is atomic."""
    shared = heads // group
    bg = tl.program_id(1)
    b, g = (bg // shared).to(tl.int64), (bg % shared).to(tl.int64)
    c = tl.program_id(0) * BLOCK_N
    key = c + tl.arange(0, BLOCK_N)
    k = take(k_ptr + b * kb + g * kh, c, sk, n, D, True, BLOCK_N, BLOCK_D)
    v = take(v_ptr + b * vb + g * vh, c, sv, n, D, True, BLOCK_N, BLOCK_D)
    start, whole, part, stop = ranges(c, right, left, n, BLOCK_N, BLOCK_M)
    whole, part = tl.where(c + BLOCK_N > n, stop, whole), tl.where(c + BLOCK_N > n, stop, part)  # keys that are none
    dk = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    for member in range(0, group):
        h = g * group + member
        q_base = q_ptr + b * qb + h * qh
        g_base = do_ptr + b * gb + h * gh
        l_base, d_base = l_ptr + (b * heads + h) * n, d_ptr + (b * heads + h) * n
        dk, dv = _to_keys(
            dk, dv, k, v, key, q_base, g_base, l_base, d_base, sq, sg, start, whole, n, left, right, scale,
            D, True, PRECISION, BLOCK_M, BLOCK_D,
        )  # fmt: skip
        dk, dv = _to_keys(
            dk, dv, k, v, key, q_base, g_base, l_base, d_base, sq, sg, whole, part, n, left, right, scale,
            D, False, PRECISION, BLOCK_M, BLOCK_D,
        )  # fmt: skip
        dk, dv = _to_keys(
            dk, dv, k, v, key, q_base, g_base, l_base, d_base, sq, sg, part, stop, n, left, right, scale,
            D, True, PRECISION, BLOCK_M, BLOCK_D,
        )  # fmt: skip
    dim = tl.arange(0, BLOCK_D)
    inside = (key[:, None] < n) & (dim[None, :] < D)
    at = b * db + g * dh + key[:, None].to(tl.int64) * sd + dim[None, :]
    tl.store(dk_ptr + at, (dk * final).to(dk_ptr.dtype.element_ty), mask=inside)
    at = b * eb + g * eh + key[:, None].to(tl.int64) * se + dim[None, :]
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _to_rows(
    dq, q, do, lse, delta, row, k_base, v_base, sk, sv, start, stop, n, left, right, scale,
    D: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """dQ += dS·K from the keys start … stop−1, without the final scale."""
    for first in range(start, stop, BLOCK_N):
        key = first + tl.arange(0, BLOCK_N)
        k = take(k_base, first, sk, n, D, MASKED, BLOCK_N, BLOCK_D)
        p = tl.exp2(tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale - lse[:, None])
        if MASKED:
            far = key[None, :] - row[:, None]
            p = tl.where((far >= -left) & (far <= right) & (key[None, :] < n), p, 0.0)
        v = take(v_base, first, sv, n, D, MASKED, BLOCK_N, BLOCK_D)
        dp = tl.dot(do, tl.trans(v), input_precision=PRECISION)
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=PRECISION)
    return dq


@triton.jit(do_not_specialize=["left", "right"])
def window_dq(
    q_ptr, k_ptr, v_ptr, o_ptr, do_ptr, l_ptr, d_ptr, dq_ptr,
    qb, qh, sq, kb, kh, sk, vb, vh, sv, ob, oh, so, gb, gh, sg, cb, ch, sc,
    heads, group, n, left, right, scale, final,
    D: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """The forward's tiles once more, for dQ; and D = rowsum(dO ∘ O) on the way, which dK needs too."""
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), bh % heads
    g = (h // group).to(tl.int64)
    h = h.to(tl.int64)
    a = tl.program_id(0) * BLOCK_M
    row = a + tl.arange(0, BLOCK_M)
    q = take(q_ptr + b * qb + h * qh, a, sq, n, D, True, BLOCK_M, BLOCK_D)
    do = take(do_ptr + b * gb + h * gh, a, sg, n, D, True, BLOCK_M, BLOCK_D)
    here = row < n
    lse = tl.load(l_ptr + bh.to(tl.int64) * n + row, mask=here, other=float("inf")) * LOG2E
    out = take(o_ptr + b * ob + h * oh, a, so, n, D, True, BLOCK_M, BLOCK_D)
    delta = tl.sum(out.to(tl.float32) * do.to(tl.float32), 1)
    tl.store(d_ptr + bh.to(tl.int64) * n + row, delta, mask=here)
    k_base = k_ptr + b * kb + g * kh
    v_base = v_ptr + b * vb + g * vh
    start, whole, part, stop = ranges(a, left, right, n, BLOCK_M, BLOCK_N)
    dq = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    dq = _to_rows(
        dq, q, do, lse, delta, row, k_base, v_base, sk, sv, start, whole, n, left, right, scale,
        D, True, PRECISION, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    dq = _to_rows(
        dq, q, do, lse, delta, row, k_base, v_base, sk, sv, whole, part, n, left, right, scale,
        D, False, PRECISION, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    dq = _to_rows(
        dq, q, do, lse, delta, row, k_base, v_base, sk, sv, part, stop, n, left, right, scale,
        D, True, PRECISION, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    dim = tl.arange(0, BLOCK_D)
    tl.store(
        dq_ptr + b * cb + h * ch + row[:, None].to(tl.int64) * sc + dim[None, :],
        (dq * final).to(dq_ptr.dtype.element_ty),
        mask=here[:, None] & (dim[None, :] < D),
    )  # fmt: skip
