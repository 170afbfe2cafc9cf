"""Measures training configurations, for predictors: tierctl predictor collect."""
