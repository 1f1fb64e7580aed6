"""Compact sets of sequences on which a function is defined, where that is not a box: ``te.domains``.

    te.Target(f, n=3, d=2, lipschitz=1.0, domain=te.domains.Simplex())
    te.domains.Ball([0.5, 0.5], 0.3) | te.domains.Box([0.0, 0.0], [0.2, 0.2])

A domain described by d numbers is one of tokens: every token lies in it. One described by n·d numbers is one of whole
sequences. Cubes of the grid that miss the domain cost nothing (``cover.py``).
"""

from thereexists.functions.domains.combined import Intersection as Intersection
from thereexists.functions.domains.combined import Union as Union
from thereexists.functions.domains.domain import Domain as Domain
from thereexists.functions.domains.implicit import Implicit as Implicit
from thereexists.functions.domains.points import Points as Points
from thereexists.functions.domains.shapes import Ball as Ball
from thereexists.functions.domains.shapes import Box as Box
from thereexists.functions.domains.shapes import Ellipsoid as Ellipsoid
from thereexists.functions.domains.shapes import Polytope as Polytope
from thereexists.functions.domains.simplex import Simplex as Simplex
