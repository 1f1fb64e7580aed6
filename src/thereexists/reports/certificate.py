"""A certificate in pictures: the bound, its parts as a stacked bar, what each part pays for, and the assumptions."""

from __future__ import annotations

from thereexists.certificates.certificate import Certificate
from thereexists.core.authors_word import WORDS, as_its_author_says
from thereexists.reports import svg
from thereexists.reports.html import Markup, facts, figure, join, key, paragraph, table

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


def bound_section(certificate: Certificate, measured: str | None = None) -> Markup:
    """The bound in one sentence, the bar, the table of parts, and the facts beside them."""
    shares = certificate.shares()
    parts = [(i, name, shares[name]) for i, name in enumerate(PARTS) if name in shares]
    bar = svg.stacked_bar([(i, size) for i, _, size in parts], "Parts of the certified bound")
    rows = [[key(i, name.replace("_", " ")), size, PARTS[name]] for i, name, size in parts]
    said = {
        **certificate.beside(),
        "measured": measured,
        "assuming": as_its_author_says("; ".join(certificate.assumptions) or "nothing"),
        "in numbers": as_its_author_says(certificate.detail()),
        **{name: as_its_author_says(text) for name, text in certificate.tried().items()},
    }
    drawn = f"The bound and its parts; a part that is not zero is drawn at least a hair wide. {certificate.added_up()}"
    return join(
        [
            paragraph(
                f"{certificate.statement()}, {WORDS}: "
                "this is read from the certificate, and its proof was not checked for this report."
            ),
            *(paragraph(f"{sentence[0].upper()}{sentence[1:]}, {WORDS}.") for sentence in certificate.meaning()),
            figure(bar, drawn.strip()),
            table(["part", "size", "what it pays for"], rows),
            facts(said),
        ]
    )
