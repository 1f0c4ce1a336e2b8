"""Rows that training has not made: their initial values are a function of seed, table and key."""
import numpy as np


def initial_rows(random_key, keys, stddev, width):
    """Returns the initial vectors [keys, width] of a table (core/base/random.h, FillNormal).

    They are the trainer's, but for the last bit of perhaps one number in 10^8: numpy's logarithms
    and sines are not the trainer's.
    """
    blocks = (width + 3) // 4
    counter = [
        np.broadcast_to(np.arange(blocks, dtype=np.uint64), (len(keys), blocks)),
        np.zeros((len(keys), blocks), np.uint64),
        np.repeat((keys & np.uint64(0xFFFFFFFF))[:, None], blocks, 1),
        np.repeat((keys >> np.uint64(32))[:, None], blocks, 1),
    ]
    words = _philox(random_key, counter)
    pairs = np.stack([*_normals(words[0], words[1]), *_normals(words[2], words[3])], -1)
    return (pairs.reshape(len(keys), 4 * blocks)[:, :width] * stddev).astype(np.float32)


def partitions(keys):
    """The partitions of keys of a keyed table, as uint64 numbers below 4,096."""
    x = np.array(keys, np.uint64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x ^= x >> np.uint64(33)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(33)
    return x % np.uint64(4096)


def _philox(key, counter):
    """Philox4x32-10 of counters, four arrays of 32-bit words in uint64."""
    low, high = key & 0xFFFFFFFF, key >> 32
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        first = np.uint64(0xD2511F53) * counter[0]
        second = np.uint64(0xCD9E8D57) * counter[2]
        counter = [
            (second >> shift) ^ counter[1] ^ np.uint64(low),
            second & mask,
            (first >> shift) ^ counter[3] ^ np.uint64(high),
            first & mask,
        ]
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return counter


def _normals(a, b):
    """Two normal numbers of two words each, by Box and Muller."""
    radius = np.sqrt(-2 * np.log((a.astype(np.float64) + 1) * 2.0**-32))
    quadrant = ((b + np.uint64(1 << 29)) >> np.uint64(30)) & np.uint64(3)
    rest = ((b - (quadrant << np.uint64(30))) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    angle = rest.astype(np.int32).astype(np.float64) * (2 * np.pi * 2.0**-32)
    sine, cosine = np.sin(angle), np.cos(angle)
    odd = (quadrant & np.uint64(1)).astype(bool)
    sine, cosine = np.where(odd, cosine, sine), np.where(odd, sine, cosine)
    sine = np.where(quadrant & np.uint64(2), -sine, sine)
    cosine = np.where((quadrant + np.uint64(1)) & np.uint64(2), -cosine, cosine)
    return radius * cosine, radius * sine
