"""The quadratic surrogate: ridge regression on psi(y), and a decoder for each loss."""
