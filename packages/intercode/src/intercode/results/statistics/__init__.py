"""Figures over episodes and their confidence intervals. The functions are pure."""
