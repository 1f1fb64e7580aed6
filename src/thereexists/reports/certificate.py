"""A certificate on a page: the bound, a picture of its parts, what each part pays for, and the assumptions."""

from __future__ import annotations

from thereexists.certificates.certificate import Certificate
from thereexists.core.authors_word import WORDS
from thereexists.reports import stated
from thereexists.reports.html import Markup, in_figures, join, paragraph, shade, upper
from thereexists.reports.verdict_pictures import bound_picture

PARTS = {  # of a certificate: what each one pays for
    "grid": "f against the network's constant, on cubes with distinct columns",
    "equal_columns": "cubes with equal columns, where Theorem 1 without positions gives 0",
    "ramps": "everything between the cubes, where the quantiser is not exact",
    "network": "cubes that stayed undecided, and the radii of the enclosures",
    "sample": "mean of the sample, and its confidence term",
    "approximation": "splines against their functions, carried to the output",
    "weights": "coefficients rounded to float64 weights",
    "rounding": "the run in the dtype against exact arithmetic",
}


def bound_section(certificate: Certificate, measured: str | None = None, drawn: bool = True) -> Markup:
    """The bound in one sentence, the picture unless it is elsewhere, the table of parts, and the facts beside them."""
    parts = [(i, name, size) for i, (name, size) in enumerate(certificate.shares().items()) if name in PARTS]
    rows = [[shade(i, name.replace("_", " ")), upper(size), PARTS[name]] for i, name, size in parts]
    said = {
        **{name: in_figures(words) for name, words in certificate.beside().items()},
        "measured": None if measured is None else in_figures(measured),
        "assuming": "; ".join(certificate.assumptions) or "nothing",
        "in numbers": in_figures(certificate.detail()),
        **{name: in_figures(words) for name, words in certificate.tried().items()},
    }
    together = certificate.added_up()
    return join(
        [
            paragraph(
                in_figures(
                    f"{certificate.statement()}, {WORDS}: "
                    "this is read from the certificate, and its proof was not checked for this report."
                )
            ),
            *(paragraph(in_figures(f"{_begun(sentence)}, {WORDS}.")) for sentence in certificate.meaning()),
            *([bound_picture(certificate)] if drawn else []),
            *([stated.table(["part", "size", "what it pays for"], rows)] if rows else []),
            *([paragraph(together, "soft")] if together else []),
            stated.facts(said),
        ]
    )


def _begun(sentence: str) -> str:
    """With a capital, unless it begins with a symbol: d_1 is no D_1."""
    return sentence if sentence[1:2] == "_" else f"{sentence[0].upper()}{sentence[1:]}"
