"""Adapters for scikit-learn, River, pandas, Polars and Arrow. No server is needed.

    from feedrank.compat.sklearn import FeedrankClassifier      partial_fit, predict, predict_proba
    from feedrank.compat.river import FeedrankClassifier        learn_one, predict_one, predict_proba_one
    from feedrank.compat.pandas import learn, predict           DataFrame in, DataFrame out
    from feedrank.compat.polars import learn, predict           the same of Polars
    from feedrank.compat.arrow import learn, predict            Table or RecordBatch in, Table out

A model trained here goes to the service by its snapshot: `PUT /v1/learners/{name}/snapshot` with `model.snapshot()`.
"""
