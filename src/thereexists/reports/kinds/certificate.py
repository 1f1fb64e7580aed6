"""The report of a certificate by itself: certificate.json, or what ``certify --json`` printed."""

from __future__ import annotations

from thereexists.certificates.certificate import FILE, load_certificate
from thereexists.core.authors_word import as_its_author_says
from thereexists.reports.artefact import Found, Kind
from thereexists.reports.certificate import Stated, bound_section
from thereexists.reports.html import Page, Section, facts, join, paragraph


def _page(found: Found) -> Page:
    record = found.record
    if found.path.name == FILE:
        load_certificate(found.path.parent)  # refuses one that was changed after it was written
    stated = Stated.of(record, found.path)
    target = record.get("target") or {}
    name = str(target.get("name", "a function"))
    body = [bound_section(stated)]
    remark = (
        "Its digest fits. Whether the weights of that digest are in the same folder, and whether the proof holds, only "
        "thereexists verify says."
        if "digest" in record
        else "This is what the command printed; it carries no digest. The certificate itself is certificate.json."
    )
    about = facts(
        {
            "function": as_its_author_says(target.get("name")),
            "sequences": as_its_author_says(f"n = {target['n']} tokens, d = {target['d']}")
            if "n" in target and "d" in target
            else None,
            "weights": f"SHA-256 {record['weights_sha256']}" if "weights_sha256" in record else None,
            "made by": as_its_author_says(f"thereexists {record['package_version']}")
            if "package_version" in record
            else None,
            "seconds": as_its_author_says(record["seconds"]) if "seconds" in record else None,
        }
    )
    sections = (
        Section("certificate", "What is certified", join(body)),
        Section("about", "What it is about", join([about, paragraph(remark, "soft")])),
    )
    return Page("certificate", f"A certificate: {name}", "A bound on the error of one network file.", sections)


KIND = Kind(
    "certificate",
    "a certificate.json, or the JSON of certify",
    lambda found: found.has("kind", "p", "bound", "parts", "assumptions"),
    _page,
)
