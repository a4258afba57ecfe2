"""Adapters for scikit-learn, River, pandas and Arrow. No server is needed.

    from feedrank.compat.sklearn import FeedrankClassifier      partial_fit, predict, predict_proba
    from feedrank.compat.river import FeedrankClassifier        learn_one, predict_one, predict_proba_one
    from feedrank.compat.frames import learn_frame              pandas DataFrame, Arrow Table or RecordBatch

A model trained here goes to the service by its snapshot: `PUT /v1/learners/{name}/snapshot` with `model.snapshot()`.
"""
