"""A/B online ranking: two or more learners on live traffic, with verdicts valid at every look."""
