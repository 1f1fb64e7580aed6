"""The mixers there are, in the order of the command's table. Importing this module registers them."""

from thereexists.mixers.attention import Attention
from thereexists.mixers.average import Average
from thereexists.mixers.bproj import BProj
from thereexists.mixers.sepconv import SepConv
from thereexists.mixers.sparse import Sparse

# isort: split
from thereexists.mixers.hybrid import HYBRID

__all__ = ["HYBRID", "Attention", "Average", "BProj", "SepConv", "Sparse"]
