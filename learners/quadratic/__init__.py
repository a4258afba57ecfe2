"""The quadratic surrogate: ridge regression on psi(y), online, and a decoder for each loss."""

from .finite import Answer, Finite
from .regression import Regression

__all__ = ["Answer", "Finite", "Regression"]
