"""The schema of raw rows, as a model keeps it (configs/proto/schema.proto)."""
from dataclasses import dataclass, field as member

from .errors import ElastorError
from .textproto import parse_textproto

FEATURES = ("NUMERIC", "CATEGORICAL", "MULTI_HOT", "SEQUENCE")
_OF_TRAINING = ("LABEL", "WEIGHT", "GROUP", "TIME")
_LAYOUTS = ("DELIMITED", "LIBSVM", "LIBFFM")


@dataclass
class Field:
    """A field. One that shares has the encoding of the one that it shares, as stored schemas say."""

    name: str
    type: str
    transform: str
    encoding: str
    buckets: int
    offset: int
    max_length: int
    separator: bytes
    column: str
    boundaries: list
    time_format: str
    any_value: bool
    list_form: str
    keep_missing: bool

    @property
    def is_bag(self):
        return self.type in ("MULTI_HOT", "SEQUENCE")

    @property
    def is_of_training(self):
        return self.type in _OF_TRAINING


@dataclass
class Schema:
    layout: str
    fields: list
    delimiter: bytes
    header: bool
    quoted: bool
    nulls: set
    skip_lines: int
    base: int  # the number of the first field that reads pairs
    has_columns_beside: bool  # the rows, in side tables or histories
    by_name: dict = member(default_factory=dict)

    @property
    def has_pairs(self):
        return self.layout != "DELIMITED"

    def pair_fields(self):
        return [field for field in self.fields if field.type not in ("LABEL", "GROUP")]

    def is_by_place(self):
        """Whether the n-th pair is the n-th field's, not that of index n (pair_lines.cc)."""
        types = {field.type for field in self.pair_fields()}
        by_index = "NUMERIC" in types and not types & {"CATEGORICAL", "IGNORED"}
        return self.layout == "LIBSVM" and not by_index

    def features(self):
        """The fields that a model reads, in the order of the schema."""
        return [field for field in self.fields if field.type in FEATURES]

    def source(self, field):
        """The name of the column that a field reads."""
        while not self.header and field.column in self.by_name:
            field = self.by_name[field.column]
        return field.column or field.name


def _one(fields, name, default):
    value = fields.get(name, [default])[-1]
    return value.decode("utf-8") if isinstance(value, bytes) and isinstance(default, str) else value


def _field(fields):
    return Field(
        name=_one(fields, "name", ""),
        type=_one(fields, "type", "NUMERIC"),
        transform=_one(fields, "transform", "NONE"),
        encoding=_one(fields, "encoding", "VOCABULARY"),
        buckets=int(_one(fields, "buckets", 0)),
        offset=int(_one(fields, "offset", 0)),
        max_length=int(_one(fields, "max_length", 0)) or 64,
        separator=_one(fields, "separator", b"")[:1] or b"|",
        column=_one(fields, "column", ""),
        boundaries=[float(b) for b in fields.get("boundaries", [])],
        time_format=_one(fields, "time_format", "UNIX_SECONDS"),
        any_value=_one(fields, "any_value", "false") == "true",
        list_form=_one(fields, "list", "PLAIN"),
        keep_missing=_one(fields, "keep_missing", "false") == "true",
    )


def parse_schema(text, where):
    """Parses a schema that a program of Elastor has written."""
    fields = parse_textproto(text, where)
    schema = Schema(
        layout=_one(fields, "layout", "DELIMITED"),
        fields=[_field(field) for field in fields.get("fields", [])],
        delimiter=_one(fields, "delimiter", b"") or b"\t",
        header=_one(fields, "header", "false") == "true",
        quoted=_one(fields, "quoted", "false") == "true",
        nulls=set(fields.get("null", [])),
        skip_lines=int(_one(fields, "skip_lines", 0)),
        base=int(_one(fields, "zero_based", "false") != "true"),
        has_columns_beside="lookup" in fields or "history" in fields,
    )
    if schema.layout not in _LAYOUTS:
        raise ElastorError(
            f"{where}: layout {schema.layout}; expected one of: " + ", ".join(_LAYOUTS)
        )
    beside = {
        _one(column, "name", "")
        for history in fields.get("history", [])
        for column in history.get("beside", [])
        if _one(column, "time_gap", "false") != "true"
    }
    for field in schema.fields:
        if (field.column or (schema.header and field.name)) in beside:
            field.keep_missing = True
        if field.transform in ("AGE", "DAYS_SINCE"):
            raise ElastorError(
                f"{where}: field {field.name}: {field.transform} is not made here; "
                "expected rows that the trainer's mode predict encodes"
            )
        schema.by_name[field.name] = field
    return schema
