"""What the text of one value means, bit for bit as `prepare` reads it (value_text.cc)."""
import datetime
import math
import re
import struct
from fractions import Fraction

_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(rb"-?\d+")
_FRACTION = rb"(?:[.,]\d+)?"
_DATE = rb"(?P<Y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)"
_TIME = rb"(?P<H>\d\d):(?P<M>\d\d)(?::(?P<S>\d\d)" + _FRACTION + rb")?"
_HALF_DAY = (
    rb"(?:,? (?P<H>\d{1,2}):(?P<M>\d\d)(?::(?P<S>\d\d)" + _FRACTION + rb")?(?: ?(?P<half>[aApP])[mM])?)?"
)
_ZONE = rb" ?(?:[zZ]|[uU][tT][cC]|[gG][mM][tT]|(?P<sign>[+-])(?P<zH>\d\d)(?::?(?P<zM>\d\d))?)"
_YEAR = rb"(?P<Y>\d{4}|\d\d)"
_FORMS = {
    "YYMMDDHH": rb"(?P<Y>\d\d)(?P<m>\d\d)(?P<d>\d\d)(?P<H>\d\d)",
    "YYYY_MM_DD_HH_MM_SS": _DATE + rb"(?:[ T]" + _TIME + rb")?",
    "ISO_8601": _DATE + rb"(?:[ Tt]" + _TIME + _ZONE + rb")?",
    "YYYYMMDDHHMMSS": rb"(?P<Y>\d{4})(?P<m>\d\d)(?P<d>\d\d)(?:(?P<H>\d\d)(?:(?P<M>\d\d)(?P<S>\d\d)?)?)?",
    "MM_DD_YYYY": rb"(?P<m>\d\d?)([/.-])(?P<d>\d\d?)\2" + _YEAR + _HALF_DAY,
    "DD_MM_YYYY": rb"(?P<d>\d\d?)([/.-])(?P<m>\d\d?)\2" + _YEAR + _HALF_DAY,
    "YYYY_MM_DD": rb"(?P<Y>\d{4})([/.-])(?P<m>\d\d?)\2(?P<d>\d\d?)" + _HALF_DAY,
}
_FORMS = {name: re.compile(form) for name, form in _FORMS.items()}
_UNIX = re.compile(rb"(-?\d+)(?:\.(\d+))?")
_UNITS = {
    "UNIX_SECONDS": 1,
    "UNIX_MILLISECONDS": 10**3,
    "UNIX_MICROSECONDS": 10**6,
    "UNIX_NANOSECONDS": 10**9,
}
_LARGEST_FLOAT = 3.4028234663852886e38
_DAY = 86400
_YEAR_0, _YEAR_10000 = -62167219200, 253402300800
_YEAR_1990, _YEAR_2040 = 631152000, 2208988800
_DAYS_OF_400_YEARS = 146097

TIME_FORMATS = {
    "UNIX_SECONDS": "seconds since 1970, of the years 0 to 9999",
    "YYMMDDHH": "YYMMDDHH",
    "YYYY_MM_DD_HH_MM_SS": "YYYY-MM-DD HH:MM:SS",
    "UNIX_MILLISECONDS": "milliseconds since 1970",
    "UNIX_MICROSECONDS": "microseconds since 1970",
    "UNIX_NANOSECONDS": "nanoseconds since 1970",
    "ISO_8601": "YYYY-MM-DDTHH:MM:SS with a zone such as Z or +02:00",
    "YYYYMMDDHHMMSS": "YYYYMMDD, with HH, MM, SS or without",
    "MM_DD_YYYY": "MM/DD/YYYY, with HH:MM:SS or without",
    "DD_MM_YYYY": "DD.MM.YYYY, with HH:MM:SS or without",
    "YYYY_MM_DD": "YYYY/MM/DD, with HH:MM:SS or without",
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


def _parse_unix(text, units):
    match = _UNIX.fullmatch(text)
    number = parse_integer(match[1]) if match else None
    if number is None:
        return None
    coarser = units // 1000
    while coarser:
        if _YEAR_1990 <= number // coarser < _YEAR_2040:
            return None
        coarser //= 1000
    below = text.startswith(b"-") and match[2] and match[2].strip(b"0") and number % units == 0
    seconds = number // units - bool(below)
    return seconds if _YEAR_0 <= seconds < _YEAR_10000 else None


def parse_time(text, time_format):
    """Returns seconds since 1970 in UTC, or None."""
    if time_format in _UNITS:
        return _parse_unix(text, _UNITS[time_format])
    match = _FORMS[time_format].fullmatch(text)
    if match is None:
        return None
    parts = match.groupdict()
    year, month, day = (int(parts[part]) for part in "Ymd")
    if len(parts["Y"]) == 2:
        year += 2000 if time_format == "YYMMDDHH" or year <= 68 else 1900
    hour, minute, second = (int(parts.get(part) or 0) for part in "HMS")
    if parts.get("half"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (parts["half"] in b"pP")
    seconds = _from_calendar(year, month, day, hour, minute, second)
    if seconds is None or not parts.get("sign"):
        return seconds
    zone_hour, zone_minute = int(parts["zH"]), int(parts["zM"] or 0)
    if zone_hour > 23 or zone_minute > 59:
        return None
    offset = zone_hour * 3600 + zone_minute * 60
    return seconds - offset if parts["sign"] == b"+" else seconds + offset


def hour_of(seconds):
    return seconds % _DAY // 3600


def weekday_of(seconds):
    return (seconds // _DAY + 3) % 7  # 1 January 1970 was a Thursday


def date_of(seconds):
    days = seconds // _DAY + datetime.date(1970, 1, 1).toordinal()
    return datetime.date.fromordinal(days if days > 0 else days + _DAYS_OF_400_YEARS)


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
