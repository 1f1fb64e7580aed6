"""The exact class T^{h,m,r}."""

from thereexists.model.embedded import EmbeddedTransformer
from thereexists.model.transformer import (
    Attention,
    BlockModule,
    FeedForward,
    Stage,
    ThreePiece,
    Transformer,
)

__all__ = ["Attention", "BlockModule", "EmbeddedTransformer", "FeedForward", "Stage", "ThreePiece", "Transformer"]
