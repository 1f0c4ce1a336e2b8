"""Speed of elastor_serve on one core, and the share of it that is not scoring; by hand.

    python3 tests/bench/serve_speed.py SERVER LIBRARY MODEL ROWS [--seconds=10] [--cores=0,1]

SERVER: elastor_serve. LIBRARY: libelastor_score.so. MODEL: RUN/model with raw fields. ROWS: a file with the model's
fields between tabs. The server has one thread on the first core, wrk (Debian's package) the second. One connection
gives the latency, eight the throughput. Both send the same rows all the time. The library scores the same rows in this
process, on the first core, in CPU time. "Not scoring" is the share of the server's CPU time (user and kernel) beyond the
library's. Prints a table.
"""
import argparse
import ctypes
import json
import os
import re
import struct
import subprocess
import tempfile
import time
import urllib.request

parser = argparse.ArgumentParser()
for name in ("server", "library", "model", "rows"):
    parser.add_argument(name)
parser.add_argument("--seconds", type=int, default=10)
parser.add_argument("--cores", default="0,1")
options = parser.parse_args()
core, client_core = (int(text) for text in options.cores.split(","))


def library_microseconds(values, rows):
    """The CPU time of a call."""
    library = ctypes.CDLL(os.path.abspath(options.library))
    model, error = ctypes.c_void_p(), ctypes.create_string_buffer(512)
    if library.elastor_open(options.model.encode(), ctypes.byref(model), error, 512):
        raise SystemExit(error.value.decode())
    texts = (ctypes.c_char_p * len(values))(*(value.encode() for value in values))
    scores = (ctypes.c_float * (rows * library.elastor_outputs(model)))()

    def call():
        if library.elastor_score_values(model, texts, ctypes.c_size_t(rows), scores, error, 512):
            raise SystemExit(error.value.decode())

    for _ in range(20):
        call()
    calls = max(20, 5000 // rows)
    begin = time.thread_time()
    for _ in range(calls):
        call()
    return 1e6 * (time.thread_time() - begin) / calls


def body(fields, values, rows, binary):
    """An inference request's headers and body."""
    inputs, data = [], b""
    for at, field in enumerate(fields):
        column = values[at :: len(fields)]
        one = {"name": field, "datatype": "BYTES", "shape": [rows, 1]}
        if binary:
            packed = b"".join(struct.pack("<I", len(v.encode())) + v.encode() for v in column)
            one["parameters"] = {"binary_data_size": len(packed)}
            data += packed
        else:
            one["data"] = column
        inputs.append(one)
    request = {"inputs": inputs}
    if binary:
        request["parameters"] = {"binary_data_output": True}
    text = json.dumps(request, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/octet-stream" if binary else "application/json"}
    if binary:
        headers["Inference-Header-Content-Length"] = str(len(text))
    return headers, text + data


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(url, headers, data, connections):
    """wrk's requests, requests a second, p50 and p99 in ms."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/body", "wb") as file:
            file.write(data)
        with open(f"{folder}/wrk.lua", "w") as file:
            file.write(f'wrk.method = "POST"\nwrk.body = io.open("{folder}/body", "rb"):read("*a")\n')
            for name, value in headers.items():
                file.write(f'wrk.headers["{name}"] = "{value}"\n')
            file.write(
                "done = function(summary, latency, requests)\n"
                "  local e = summary.errors\n"
                "  print('DONE', summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),\n"
                "        e.connect + e.read + e.write + e.status + e.timeout)\nend\n"
            )
        command = ["taskset", "--cpu-list", str(client_core), "wrk", "--threads=1", f"--connections={connections}",
                   f"--duration={options.seconds}s", f"--script={folder}/wrk.lua", url]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    requests, duration, p50, p99, errors = (float(t) for t in re.search(r"DONE\t(.*)", output)[1].split("\t"))
    if errors:
        raise SystemExit(f"{errors:.0f} requests failed")
    return requests, 1e6 * requests / duration, p50 / 1e3, p99 / 1e3


def main():
    os.sched_setaffinity(0, {core})
    with open(options.rows) as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    server = subprocess.Popen([options.server, f"--model={options.model}", "--threads=1", "--port=0"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        first = server.stdout.readline()
        if not (found := re.search(r"http://[\d.:]+", first)):
            raise SystemExit(first.rstrip())
        url = found[0]
        with urllib.request.urlopen(f"{url}/v2/models/model") as answer:
            fields = [one["name"] for one in json.load(answer)["inputs"]]
        print("| rows | form | requests/s | rows/s | p50, ms | p99, ms | server, us | library, us | not scoring |")
        print("|---|---|---|---|---|---|---|---|---|")
        for rows in (1, 256):
            values = [value for line in lines[:rows] for value in line]
            if len(values) != rows * len(fields):
                raise SystemExit(f"{options.rows}: expected {len(fields)} columns and {rows} rows")
            scoring = library_microseconds(values, rows)
            for binary in (False, True):
                headers, data = body(fields, values, rows, binary)
                infer = f"{url}/v2/models/model/infer"
                load(infer, headers, data, 1)
                _, _, p50, p99 = load(infer, headers, data, 1)
                begin = cpu_seconds(server.pid)
                requests, rate, _, _ = load(infer, headers, data, 8)
                cost = 1e6 * (cpu_seconds(server.pid) - begin) / requests
                print(f"| {rows} | {'binary' if binary else 'JSON'} | {rate:,.0f} | {rate * rows:,.0f} | {p50:.3f} | "
                      f"{p99:.3f} | {cost:,.0f} | {scoring:,.0f} | {1 - scoring / cost:.2f} |", flush=True)
    finally:
        server.terminate()
        server.wait()


main()
