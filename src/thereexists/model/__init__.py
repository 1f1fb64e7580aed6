"""The exact class T^{h,m,r}."""

from thereexists.model.transformer import (
    Attention,
    BlockModule,
    FeedForward,
    Stage,
    ThreePiece,
    Transformer,
)

__all__ = ["Attention", "BlockModule", "FeedForward", "Stage", "ThreePiece", "Transformer"]
