"""Reads what Elastor writes: runs, models, predictions; and encodes raw rows for exported models.

docs/use/python.md of Elastor has examples. Nothing here takes part in training.
"""
from .encoder import Encoder
from .errors import ElastorError
from .model import Model, read_model
from .run import Records, Run, read_predictions, read_run
from .table import Table

__all__ = [
    "ElastorError",
    "Encoder",
    "Model",
    "Records",
    "Run",
    "Table",
    "read_model",
    "read_predictions",
    "read_run",
]
