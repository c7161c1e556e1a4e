"""Evaluates agents on datasets, replays recorded episodes, and checks datasets."""
