"""The mixers there are, in the order of the command's table. Importing this module registers them."""

from thereexists.mixers.attention import ATTENTION, Attention
from thereexists.mixers.average import AVERAGE, Average
from thereexists.mixers.bproj import BPROJ, BProj
from thereexists.mixers.hybrid import HYBRID
from thereexists.mixers.registry import register_mixer
from thereexists.mixers.sepconv import SEPCONV, SepConv
from thereexists.mixers.sparse import SPARSE, Sparse

for kind in (ATTENTION, AVERAGE, BPROJ, SEPCONV, SPARSE, HYBRID):
    register_mixer(kind)

__all__ = ["Attention", "Average", "BProj", "SepConv", "Sparse"]
