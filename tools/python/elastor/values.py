"""What the text of one value means, bit for bit as `prepare` reads it (value_text.cc)."""
import datetime
import math
import re
import struct
from fractions import Fraction

_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(rb"-?\d+")
_DATE = re.compile(rb"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d))?")
_HOURS = re.compile(rb"(\d\d)(\d\d)(\d\d)(\d\d)")
_LARGEST_FLOAT = 3.4028234663852886e38
_DAY = 86400
_YEAR_0, _YEAR_10000 = -62167219200, 253402300800
_DAYS_OF_400_YEARS = 146097

TIME_FORMATS = {
    "UNIX_SECONDS": "seconds since 1970, of the years 0 to 9999",
    "YYMMDDHH": "YYMMDDHH",
    "YYYY_MM_DD_HH_MM_SS": "YYYY-MM-DD HH:MM:SS",
}


def parse_number(text):
    """Returns a finite number that a float can hold, or None."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    if value == 0 and len(text) <= 16 and text.lstrip(b"+-").isdigit():
        return 0.0  # integers have no -0
    return value if abs(value) <= _LARGEST_FLOAT else None


def parse_integer(text):
    """Returns an integer of 64 bits, or None."""
    if not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def _from_calendar(year, month, day, hour, minute, second):
    try:
        date = datetime.date(year or 400, month, day).toordinal()
    except ValueError:
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    days = date - (0 if year else _DAYS_OF_400_YEARS) - datetime.date(1970, 1, 1).toordinal()
    return days * _DAY + hour * 3600 + minute * 60 + second


def parse_time(text, time_format):
    """Returns seconds since 1970 in UTC, or None."""
    if time_format == "UNIX_SECONDS":
        seconds = parse_integer(text)
        return seconds if seconds is not None and _YEAR_0 <= seconds < _YEAR_10000 else None
    match = (_HOURS if time_format == "YYMMDDHH" else _DATE).fullmatch(text)
    if match is None:
        return None
    parts = [int(part or 0) for part in match.groups()]
    if time_format == "YYMMDDHH":
        return _from_calendar(2000 + parts[0], *parts[1:], 0, 0)
    return _from_calendar(*parts)


def hour_of(seconds):
    return seconds % _DAY // 3600


def weekday_of(seconds):
    return (seconds // _DAY + 3) % 7  # 1 January 1970 was a Thursday


def _fma(a, b, c):
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def canonical_log(x):
    """CanonicalLog of core/base/canonical_math.h."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", x))
    exponent = (bits - 0x3FE6A09E667F3BCD) >> 52  # x = 2^exponent z, z in [sqrt(1/2), sqrt(2))
    (z,) = struct.unpack("<d", struct.pack("<Q", bits - (exponent << 52)))
    s = (z - 1) / (z + 1)
    series = 1 / 23
    for i in range(10, -1, -1):
        series = _fma(series, s * s, 1 / (2 * i + 1))
    low = _fma(exponent, float.fromhex("0x1.a39ef35793c76p-33"), 2 * s * series)
    return _fma(exponent, float.fromhex("0x1.62e42feep-1"), low)


def log2_transform(x):
    """Returns floor(ln(x)^2) if x > 2, else x."""
    if not x > 2:
        return x
    squared = math.log(x) ** 2
    if abs(squared - round(squared)) < 1e-9 * squared:  # where the last bits of ln(x) decide
        log = canonical_log(x)
        squared = log * log
    return float(math.floor(squared))
