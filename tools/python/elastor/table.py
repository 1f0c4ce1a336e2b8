"""An embedding table: the vector of a value."""
import numpy as np

from .errors import ElastorError, shown
from .fields import BadValue, IdEncoder


class Table:
    """The rows that a model holds of one table.

    A value is what the field's encoding sees: the text of the column, or what a transform such as
    HOUR makes of it. Values of a vocabulary begin with id 1; id 0 stands for missing values, and for
    those that training has not seen. The ids of a keyed table are keys, numbers below 2^64, and 0
    stands for missing values alone.
    """

    def __init__(self, name, ids, rows, encoder, values, where):
        """ids: ascending, of `rows` [rows, width], uint64 of a keyed table; None: row i has id i.

        encoder: an IdEncoder, or text that says why there is none. values: of ids 1, 2, ...; or
        None.
        """
        self.name = name
        self.rows = rows
        self.row_ids = np.arange(len(rows)) if ids is None else ids
        self._encoder = encoder
        self._values = values
        self._where = f"{where}: table {name}: "

    @property
    def keyed(self):
        return self.row_ids.dtype == np.uint64

    @property
    def width(self):
        return self.rows.shape[1]

    @property
    def values(self):
        """Values by id: values[1] is the text with id 1, values[0] is None."""
        if self._values is None:
            raise ElastorError(self._where + "has no vocabulary, so its ids have no texts")
        return [None] + [value.decode("utf-8", "surrogateescape") for value in self._values]

    def encoder_for(self, field):
        """Returns the IdEncoder of a field of the schema that uses this table."""
        if isinstance(self._encoder, str):
            raise ElastorError(self._where + self._encoder)
        return IdEncoder(field, self._encoder.ids_of_values)

    def ids(self, values):
        """Returns the ids of some values, as int64, or keys as uint64."""
        if isinstance(values, (str, bytes)):
            raise ElastorError(self._where + "ids() and vectors() take a list of values")
        if isinstance(self._encoder, str):
            raise ElastorError(self._where + self._encoder)
        return np.array([self._id_of(value) for value in values], self.row_ids.dtype)

    def _id_of(self, value):
        try:
            return self._encoder.id_of(text_of(value))
        except BadValue as bad:
            raise ElastorError(self._where + str(bad)) from None

    def _array_of(self, ids):
        try:
            return np.asarray(ids, self.row_ids.dtype)
        except OverflowError:
            expected = "keys from 0 to 2^64 - 1" if self.keyed else "ids of 64 bits"
            raise ElastorError(f"{self._where}expected {expected}, found {str(ids)[:60]}") from None

    def _places(self, ids):
        places = np.searchsorted(self.row_ids, ids)
        there = places < len(self.row_ids)
        there[there] = self.row_ids[places[there]] == ids[there]
        return places, there

    def has_rows(self, ids):
        """Returns for each id whether the table holds its row."""
        return self._places(self._array_of(ids))[1]

    def vectors_of_ids(self, ids):
        """Returns the vectors [ids, width] of some ids."""
        ids = self._array_of(ids)
        places, there = self._places(ids)
        if there.all():
            return self.rows[places]
        if self.keyed:
            raise ElastorError(f"{self._where}holds no row of key {ids[~there][0]}")
        raise ElastorError(
            f"{self._where}holds no row of id {ids[~there][0]}, which training has not met; "
            "trainer --mode=export writes the rows of all ids"
        )

    def vectors(self, values):
        """Returns the vectors [values, width] of some values."""
        return self.vectors_of_ids(self.ids(values))

    def __getitem__(self, value):
        return self.vectors([value])[0]

    def __contains__(self, value):
        """Whether training has seen the value, and its row is there."""
        ids = self.ids([value])
        return bool(self.has_rows(ids)[0]) and (self._values is None or ids[0] > 0)

    def __repr__(self):
        return f"<table {self.name}: {len(self.rows)} rows of {self.width}>"


def text_of(value):
    """Returns a value as the bytes of a column: None is missing, numbers are written in decimal."""
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return b"%d" % int(value)
    raise BadValue(f"{value!r}", "a text, an integer or None")
