"""A/B tests of learners on live traffic, with verdicts that stay valid at every look."""
