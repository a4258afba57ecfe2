"""One item chosen out of several, and a reward for it: bilinear scores, inverse-gap exploration, an apprentice."""
