"""Compares small rows with their definition (core/kernels/small_rows.h), in Python's arithmetic.

Arguments: INT8 or INT4, then pairs: a publication with such rows, and a folder with the same rows in FLOAT32. A row of
the publication must be there, and in a base every row. Prints how many rows were compared.
"""
import json
import struct
import sys
from pathlib import Path


def tensors(folder):
    """Returns the embedding tensors of a folder, over all its files: name -> type, shape, bytes."""
    found = {}
    for path in sorted(Path(folder).glob('embedding-*.safetensors')):
        data = path.read_bytes()
        size = struct.unpack('<Q', data[:8])[0]
        for name, entry in json.loads(data[8:8 + size]).items():
            begin, end = entry['data_offsets']
            found.setdefault(name, []).append((entry['dtype'], entry['shape'], data[8 + size + begin:8 + size + end]))
    return found


def rows(folder, column, dtype):
    """Returns the rows of every table: table -> key -> bytes."""
    found = tensors(folder)
    tables = {}
    for name, parts in found.items():
        if not name.endswith('/keys'):
            continue
        table = name[:-len('/keys')]
        of_table = tables.setdefault(table, {})
        for (_, (count,), keys), (kind, shape, values) in zip(parts, found[f'{table}/{column}']):
            assert kind == dtype and shape[0] == count, (name, kind, shape)
            size = len(values) // max(count, 1)
            for i, key in enumerate(struct.unpack(f'<{count}q', keys)):
                of_table[key] = values[i * size:(i + 1) * size]
    return tables


def to_float32(value):
    return struct.unpack('<f', struct.pack('<f', value))[0]


def small(weights, bits):
    """Returns the bytes of a small row. struct and float round to nearest, ties to even."""
    least_number = 2.0 ** -100
    weights = [w if abs(w) >= least_number else 0.0 for w in weights]
    offset = min(weights)
    scale = (max(weights) - offset) / (2 ** bits - 1)
    scale = to_float32(scale) if scale >= least_number else 0.0
    number = 0
    for i, weight in enumerate(weights):
        code = round((weight - offset) / scale) if scale else 0
        number |= code << i * bits
    size = (len(weights) * bits + 31) // 32 * 4
    return struct.pack('<ff', scale, offset) + number.to_bytes(size, 'little')


def compare(kind, published, exact):
    """Returns the number of rows."""
    bits = {'INT8': 8, 'INT4': 4}[kind]
    expected, found = rows(exact, 'rows', 'F32'), rows(published, 'rows_' + kind.lower(), 'U8')
    assert expected.keys() == found.keys(), (expected.keys(), found.keys())
    compared = 0
    for table, of_table in found.items():
        if 'base-' in published:
            assert of_table.keys() == expected[table].keys(), table
        for key, stored in of_table.items():
            values = expected[table][key]
            weights = struct.unpack(f'<{len(values) // 4}f', values)
            assert stored == small(weights, bits), (table, key, weights, stored.hex(), small(weights, bits).hex())
            compared += 1
    return compared


kind, *folders = sys.argv[1:]
print(sum(compare(kind, *pair) for pair in zip(folders[::2], folders[1::2])))
