"""``reference``: the definition. Layer after layer in plain torch, with gradients, on any device, in any dtype."""

from __future__ import annotations

from torch import Tensor

from thereexists.evaluate._engine import Engine, register
from thereexists.model import Transformer


class Reference(Engine):
    name = "reference"
    promise = "the definition; every other engine is compared with it"

    def refuses(self, network: Transformer, X: Tensor) -> str | None:
        return None

    def __call__(self, network: Transformer, X: Tensor) -> Tensor:
        return network(X)

    def explain(self, network: Transformer, X: Tensor) -> tuple[str, ...]:
        return tuple(
            f"{name}: {stage.depth:,} layers one by one, plain torch" for name, stage in network.stages.items()
        )


register(Reference())
