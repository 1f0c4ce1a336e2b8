"""XXH3-64 with seed 0, by which Elastor hashes texts and files (https://xxhash.com)."""
import numpy as np

_MASK = (1 << 64) - 1
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_P64 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_STRIPES = 16  # of a block
_BLOCK = 64 * _STRIPES
_BLOCKS_AT_ONCE = 1024


def _word(data, at, size=8):
    return int.from_bytes(data[at : at + size], "little")


def _folded(a, b):
    product = a * b
    return (product & _MASK) ^ (product >> 64)


def _avalanche(h):
    h ^= h >> 37
    h = h * 0x165667919E3779F9 & _MASK
    return h ^ (h >> 32)


def _old_avalanche(h):
    h ^= h >> 33
    h = h * _P64[1] & _MASK
    h ^= h >> 29
    h = h * _P64[2] & _MASK
    return h ^ (h >> 32)


def _rotated(h, bits):
    return (h << bits | h >> (64 - bits)) & _MASK


def _mixed(data, at, secret):
    return _folded(
        _word(data, at) ^ _word(_SECRET, secret), _word(data, at + 8) ^ _word(_SECRET, secret + 8)
    )


def _up_to_16(data):
    size = len(data)
    if size > 8:
        low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
        high = _word(data, size - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche(size + swapped + high + _folded(low, high) & _MASK)
    if size > 3:
        words = _word(data, size - 4, 4) + (_word(data, 0, 4) << 32)
        h = words ^ _word(_SECRET, 8) ^ _word(_SECRET, 16)
        h ^= _rotated(h, 49) ^ _rotated(h, 24)
        h = h * 0x9FB21C651E98DF25 & _MASK
        h ^= (h >> 35) + size
        h = h * 0x9FB21C651E98DF25 & _MASK
        return h ^ (h >> 28)
    if size > 0:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _old_avalanche(combined ^ _word(_SECRET, 0, 4) ^ _word(_SECRET, 4, 4))
    return _old_avalanche(_word(_SECRET, 56) ^ _word(_SECRET, 64))


def _up_to_240(data):
    size = len(data)
    h = size * _P64[0]
    if size <= 128:
        for pair in range((size - 1) // 32, -1, -1):
            h += _mixed(data, 16 * pair, 32 * pair)
            h += _mixed(data, size - 16 * (pair + 1), 32 * pair + 16)
        return _avalanche(h & _MASK)
    h = _avalanche(h + sum(_mixed(data, 16 * i, 16 * i) for i in range(8)) & _MASK)
    h += sum(_mixed(data, 16 * i, 16 * (i - 8) + 3) for i in range(8, size // 16))
    return _avalanche(h + _mixed(data, size - 16, 136 - 17) & _MASK)


def _keys(first):
    """The secret's words from byte `first` on for each of the eight lanes."""
    return np.frombuffer(_SECRET, "<u8", count=8, offset=first)


def _stripe_sums(words, keys):
    """What stripes [..., 8 words] add to the lanes."""
    keyed = words ^ keys
    return (keyed & np.uint64(0xFFFFFFFF)) * (keyed >> np.uint64(32)) + words[
        ..., [1, 0, 3, 2, 5, 4, 7, 6]
    ]


def _long(data):
    size = len(data)
    lanes = np.array(
        [_P32[2], _P64[0], _P64[1], _P64[2], _P64[3], _P32[1], _P64[4], _P32[0]], np.uint64
    )
    stripe_keys = np.stack([_keys(8 * i) for i in range(_STRIPES)])
    scramble, prime, shift = _keys(192 - 64), np.uint64(_P32[0]), np.uint64(47)
    blocks = (size - 1) // _BLOCK
    for first in range(0, blocks, _BLOCKS_AT_ONCE):
        count = min(_BLOCKS_AT_ONCE, blocks - first)
        words = np.frombuffer(data, "<u8", count=count * _BLOCK // 8, offset=first * _BLOCK)
        sums = _stripe_sums(words.reshape(count, _STRIPES, 8), stripe_keys).sum(axis=1)
        for block in sums:
            lanes = lanes + block
            lanes = (lanes ^ (lanes >> shift) ^ scramble) * prime
    stripes = (size - 1 - blocks * _BLOCK) // 64
    words = np.frombuffer(data, "<u8", count=stripes * 8, offset=blocks * _BLOCK)
    lanes = lanes + _stripe_sums(words.reshape(stripes, 8), stripe_keys[:stripes]).sum(axis=0)
    words = np.frombuffer(data, "<u8", count=8, offset=size - 64)
    lanes = lanes + _stripe_sums(words, _keys(192 - 64 - 7))
    h = size * _P64[0]
    for i in range(4):
        low, high = int(lanes[2 * i]), int(lanes[2 * i + 1])
        h += _folded(low ^ _word(_SECRET, 11 + 16 * i), high ^ _word(_SECRET, 19 + 16 * i))
    return _avalanche(h & _MASK)


def xxh3_64(data):
    """Returns the hash of bytes, a number below 2^64."""
    if len(data) <= 16:
        return _up_to_16(data)
    return _up_to_240(data) if len(data) <= 240 else _long(data)


def hash_text(data):
    """Returns the hash as files of Elastor write it."""
    return f"{xxh3_64(data):016x}"
