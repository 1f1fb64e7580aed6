"""The table of operations: how each runs on arrays, how it becomes atoms, and its Lipschitz constant; proofs beside."""

from thereexists.constructions.program.primitives import attention, hinges, linear, positions, products, sorting
from thereexists.constructions.program.primitives.base import Primitive

PRIMITIVES: dict[str, Primitive] = {
    **linear.TABLE,
    **positions.TABLE,
    **hinges.TABLE,
    **sorting.TABLE,
    **products.TABLE,
    **attention.TABLE,
}

__all__ = ["PRIMITIVES", "Primitive"]
