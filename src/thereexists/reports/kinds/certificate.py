"""The report of a certificate by itself: certificate.json, or what ``certify --json`` printed."""

from __future__ import annotations

from thereexists.certificates.certificate import FILE, certificate_of, load_certificate
from thereexists.core.authors_word import WORDS, as_its_author_says
from thereexists.reports import stated
from thereexists.reports.artefact import Found, Kind
from thereexists.reports.certificate import bound_section
from thereexists.reports.first_screen import PAPERS, first_screen
from thereexists.reports.html import Page, Section, at_most, in_figures, join, paragraph
from thereexists.reports.verdict_pictures import bound_picture


def _page(found: Found) -> Page:
    record = dict(found.record)
    if found.path.name == FILE:
        certificate = load_certificate(found.path.parent)  # refuses one that was changed after it was written
        remark = (
            "Its digest matches. Only thereexists verify can tell whether the weights with that digest are in the same "
            "folder, and whether the proof holds."
        )
    else:
        for beside in ("seconds", "normalised", "meaning"):  # how long it took, and what follows, are not part of it
            record.pop(beside, None)
        certificate = certificate_of(record, found.path, version=2)  # an older command may have printed it
        remark = "This is what the command printed; it carries no digest. The certificate itself is certificate.json."
    subject = certificate.subject()
    weights, version = f"SHA-256 {certificate.weights_sha256}", f"thereexists {certificate.package_version}"
    about = stated.facts({**subject, "weights": weights, "made by": version})
    sections = (
        Section("certificate", "What is certified", bound_section(certificate, drawn=False)),
        Section("about", "What it is about", join([about, paragraph(remark, "soft")])),
    )
    what, name = next(iter(subject.items()))
    named = name.partition("SHA-256 ")[0].rstrip(", ")  # a hash is no name
    of = f": {as_its_author_says(named)}" if named else ""
    title = f"A certificate for {'an' if what[0] in 'aeiou' else 'a'} {what}{of}"
    size = float(certificate.bound)
    numbers = [
        (at_most(size) if size else "exact", f"{in_figures(certificate.claim())}: {WORDS}"),
        (certificate.label(), WORDS),
        ("not verified", "for this page: thereexists verify, in the folder of the weights"),
    ]
    source = f"Where the first such networks were written down: {PAPERS[certificate.paper]}."
    lead = "A bound on the error of one network file."
    first = first_screen(numbers, source, bound_picture(certificate))
    return Page("certificate", title, lead, sections, first)


KIND = Kind(
    "certificate",
    "a certificate.json, or the JSON of certify",
    lambda found: found.has("kind", "bound", "assumptions", "weights_sha256"),
    _page,
)
