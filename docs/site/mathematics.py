"""Formulas of the pages, $…$ and $$…$$, as MathML: made when the site is built, typeset by the browser, no script."""

from __future__ import annotations

import html as entities
import re

try:
    from latex2mathml.converter import convert
except ImportError:  # the site can be built without; formulas then stay as they were written
    convert = None

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.S)


def typeset(html: str) -> str:
    """Replace what pymdownx.arithmatex marked."""
    return _FORMULA.sub(lambda m: _formula(entities.unescape(m[3]), display=m[2] == "["), html)


def _formula(tex: str, display: bool) -> str:
    if convert is None:
        return f"<code>{entities.escape(tex)}</code>"
    made = convert(tex, display="block" if display else "inline")
    return f'<div class="formula">{made}</div>' if display else made
