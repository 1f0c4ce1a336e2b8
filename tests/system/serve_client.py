"""elastor_serve as its clients see it: the bits of mode predict whatever the batch and the way of
sending, an error body for each mistake, clients that are slow, rude or many, and an end in order.

Arguments: the server, a model without fields of several ids, its raw rows between tabs, the
expected probabilities (index,probability). Prints a line for each thing that is not so.
"""
import http.client
import json
import math
import signal
import socket
import struct
import subprocess
import sys
import threading

PROGRAM, MODEL, VALUES, EXPECTED = sys.argv[1:]
FIELDS = ["user", "item", "price"]
ROWS = [line.rstrip("\n").split("\t") for line in open(VALUES)]
EXPECT = [line.split(",")[1] for line in open(EXPECTED).read().split()[1:]]
INFER = "/v2/models/ads/infer"
failures = 0


def expect(what, expected, found):
    global failures
    if expected != found:
        failures += 1
        print(f"FAILED: {what}: expected {expected!r}, found {found!r}")


def start(*flags):
    server = subprocess.Popen([PROGRAM, f"--model={MODEL}", "--name=ads", "--port=0", *flags],
                              stdout=subprocess.PIPE, text=True)
    server.port = int(server.stdout.readline().split("/v2")[0].rsplit(":", 1)[1])
    return server


def ask(port, method, path, body=None, headers={}):
    """Returns the code, the headers and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    answer = response.status, response.headers, response.read()
    connection.close()
    return answer


def columns(rows):
    return [{"name": name, "datatype": "BYTES", "shape": [len(rows), 1],
             "data": [row[i] for row in rows]} for i, name in enumerate(FIELDS)]


def infer(port, request, code=200):
    found, _, body = ask(port, "POST", INFER, json.dumps(request))
    expect(f"code of {body[:200]}", code, found)
    return json.loads(body)


def text(numbers):
    return ["%.9g" % struct.unpack("f", struct.pack("f", x)) for x in numbers]


def score_json(port, rows):
    return text(infer(port, {"inputs": columns(rows)})["outputs"][0]["data"])


def score_binary(port, rows):
    """As tritonclient sends it: texts with their lengths, numbers as doubles."""
    inputs, parts = [], b""
    for i, name in enumerate(FIELDS):
        if name == "price":
            data = b"".join(struct.pack("<d", float(row[i] or "nan")) for row in rows)
        else:
            data = b"".join(struct.pack("<I", len(row[i])) + row[i].encode() for row in rows)
        inputs.append({"name": name, "datatype": "FP64" if name == "price" else "BYTES",
                       "shape": [len(rows)], "parameters": {"binary_data_size": len(data)}})
        parts += data
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    code, headers, body = ask(port, "POST", INFER, head + parts,
                              {"Inference-Header-Content-Length": str(len(head))})
    expect("code of binary data", 200, code)
    return text(struct.unpack(f"<{len(rows)}f",
                              body[int(headers["Inference-Header-Content-Length"]):]))


def check_bits(port):
    found = {}

    def score(name, way, batch):
        lines = []
        for begin in range(0, len(ROWS) if batch > 1 else 60, batch):
            lines += way(port, ROWS[begin:begin + batch])
        found[name] = lines

    threads = [threading.Thread(target=score, args=arguments) for arguments in
               [("JSON 47", score_json, 47), ("JSON 600", score_json, 600),
                ("binary 1", score_binary, 1), ("binary 256", score_binary, 256)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, lines in found.items():
        expect(f"bits, {name}", EXPECT[:len(lines)], lines)
    expect("no rows", [], score_json(port, []))


def check_outputs(port):
    code, _, body = ask(port, "GET", "/v2/models/ads")
    metadata = json.loads(body)
    expect("inputs", [["user", "BYTES"], ["item", "BYTES"], ["price", "FP64"]],
           [[i["name"], i["datatype"]] for i in metadata["inputs"]])
    version = metadata["versions"][0]
    expect("ready", 200, ask(port, "GET", f"/v2/models/ads/versions/{version}/ready")[0])
    # Values that training has not seen have id 0.
    raw = infer(port, {"inputs": columns([["nobody", "none", ""]]), "id": "7",
                       "outputs": [{"name": "logit"}, {"name": "probability"}]})
    logit, probability = (output["data"][0] for output in raw["outputs"])
    expect("a logit", True, abs(1 / (1 + math.exp(-logit)) - probability) < 1e-6)
    expect("id and version", ["7", version], [raw["id"], raw["model_version"]])
    ids = [{"name": "numeric", "datatype": "FP32", "shape": [1, 1], "data": [None]},
           {"name": "ids", "datatype": "INT64", "shape": [1, 2], "data": [[0, 0]]}]
    request = {"inputs": ids, "parameters": {"encoded": True},
               "outputs": [{"name": "logit"}, {"name": "probability"}]}
    expect("ids", raw["outputs"], infer(port, request)["outputs"])
    ids[1].update(shape=[2], data=[0, 0])
    ids.append({"name": "offsets", "datatype": "INT64", "shape": [3], "data": [0, 1, 2]})
    expect("ids in bags", raw["outputs"], infer(port, request)["outputs"])
    ids[2]["data"] = [0, 1, 3]
    expect("offsets beyond the ids", "input 'ids': found 2 elements, expected 3 by 'offsets'",
           infer(port, request, 400)["error"])


def check_mistakes(port):
    def mistake(error, change, code=400):
        inputs = columns(ROWS[:2])
        request = {"inputs": inputs}
        change(request, inputs)
        expect("error", error, infer(port, request, code).get("error"))

    def put(i, **members):
        return lambda request, inputs: inputs[i].update(members)

    mistake("input 'item' is missing; expected user, item, price", lambda r, i: i.pop(1))
    mistake("input 'more': no such input; expected user, item, price", put(0, name="more"))
    mistake("input 'user': is there twice", put(1, name="user"))
    mistake("input 'user': datatype 'BOOL'; expected BYTES, INT32, INT64, FP32 or FP64",
            put(0, datatype="BOOL"))
    mistake("input 'user': its values are not numbers; expected datatype BYTES, or an integer one",
            put(0, datatype="FP32", data=[1, 2]))
    mistake("input 'user': 'shape': expected [rows, 1] or [rows]", put(0, shape=[1, 2]))
    mistake("input 'item': found 1 rows, expected 2 as in the first input",
            put(1, shape=[1], data=["i1"]))
    mistake("input 'item': found 1 elements, expected 2 by its shape", put(1, data=["i1"]))
    nested = "input 'user': 'data': is nested otherwise than its shape; flat data need no nesting"
    mistake(nested, put(0, data=[["u1", "u2"]]))
    mistake(nested, put(0, data=["u1", ["u2"]]))
    mistake("input 'user': has 'data' and 'binary_data_size'",
            put(0, parameters={"binary_data_size": 0}))
    mistake("input 'user': parameter 'classification': is not supported; expected binary_data_size",
            put(0, parameters={"classification": 1}))
    mistake("output 'logit': parameter 'binary': is not supported; expected binary_data",
            lambda r, i: r.update(outputs=[{"name": "logit", "parameters": {"binary": True}}]))
    mistake("the request: parameter 'encode': is not supported; expected encoded or"
            " binary_data_output", lambda r, i: r.update(parameters={"encode": True}))
    mistake("the request: 'parameters': expected an object", lambda r, i: r.update(parameters=[]))
    mistake("'id': expected a text of at most 256 bytes", lambda r, i: r.update(id="i" * 257))
    mistake("input 'item': element 1: expected a text or null", put(1, data=["i1", 2]))
    mistake("input 'item': row 1: has a zero byte; expected text", put(1, data=["i1", "i\0"]))
    mistake("row 1: column 3 (price): found 'dear', expected a number", put(2, data=["1", "dear"]))
    mistake("found 601 rows, expected at most 600", put(0, shape=[601]))
    mistake("input 'user': 'data' is missing", lambda r, i: i[0].pop("data"))
    mistake("output 'score': no such output; expected probability or logit",
            lambda r, i: r.update(outputs=[{"name": "score"}]))
    no_json = "the body is no JSON object, is nested more than 100 deep, or has a number too large"
    many = json.dumps({f"a{i}": i for i in range(1073)}).encode()
    for error, body in [(no_json, b'{"inputs": ['), (no_json, b"[" * 5000),
                        (no_json, b'{"id": 1e999}'),
                        ("the body has 1073 members of JSON objects; expected at most 1072", many),
                        ("the request: 'inputs' is missing", b'{"a": "\\"' + b":" * 1073 + b'"}'),
                        ("the JSON text of the body is not UTF-8", b'{"id": "\xff"}'),
                        ("the request: 'inputs' is missing", b"{}")]:
        code, _, answer = ask(port, "POST", INFER, body)
        expect(body[:20], (400, error), (code, json.loads(answer)["error"]))
    for code, allow, method, path in [
            (404, None, "GET", "/"), (404, None, "GET", "/v2/models/other"),
            (404, None, "POST", "/v2/models/ads/versions/1/infer"),
            (405, "POST", "GET", INFER), (405, "GET, HEAD", "POST", "/metrics")]:
        found, headers, answer = ask(port, method, path)
        expect(path, (code, allow, True), (found, headers["Allow"], "error" in json.loads(answer)))
    expect("a large body", 413, ask(port, "POST", INFER, b"x" * 300000)[0])
    expect("gzip", 415, ask(port, "POST", INFER, b"", {"Content-Encoding": "gzip"})[0])


def exchange(port, data):
    """Sends bytes; returns all that comes until the server closes."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def check_connections(port):
    half = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    for i, connection in enumerate(half):  # HTTP/1.0 knows no encouragement
        version = [b"1.0\r\nExpect: 100-continue", b"1.1"][i % 2]
        connection.sendall(b"POST %s HTTP/%s\r\nContent-Length: 9\r\n\r\n{" %
                           (INFER.encode(), version))
    expect("beside half requests", EXPECT[:2], score_json(port, ROWS[:2]))
    for connection in half:
        expect("a half request", b"HTTP/1.1 408", connection.recv(65536)[:12])
        connection.close()
    expect("no request", b"HTTP/1.1 400", exchange(port, b"hello\r\n\r\n")[:12])
    expect("a large header", b"HTTP/1.1 431",
           exchange(port, b"GET /v2 HTTP/1.1\r\nA: " + b"a" * 20000)[:12])
    live = b"GET /v2/health/live HTTP/1.1\r\n\r\n"
    last = b"GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n"
    expect("requests in one", 3, exchange(port, live + live + last).count(b"200 OK"))
    body = json.dumps({"inputs": columns(ROWS[:1])}).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = f"POST {INFER} HTTP/1.1\r\nConnection: close\r\n".encode()
    length = b"Inference-Header-Content-Length: 3\r\n"
    trailer = chunks[:-2] + length + b"\r\n"
    for way, data in [("chunks", b"Transfer-Encoding: chunked\r\n\r\n" + chunks),
                      ("a trailer", b"Transfer-Encoding: chunked\r\n\r\n" + trailer),
                      ("encouraged", b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" %
                       len(body) + body)]:
        expect(way, True, b" 200 OK\r\n" in exchange(port, head + data))
    # The server refuses what it does not read to its end, and takes no other request from there.
    for code, data in [(501, b"Transfer-Encoding: chunked, x\r\n\r\n" + live),
                       (501, b"Transfer-Encoding: identity\r\n\r\n" + live),
                       (501, b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunks),
                       (400, 2 * length + b"Content-Length: 3\r\n\r\n{} " + live),
                       (431, b"Transfer-Encoding: chunked\r\n\r\n5;a=" + b"a" * 70000),
                       (431, b"Transfer-Encoding: chunked\r\n\r\n0\r\nA: " + b"a" * 70000)]:
        answer = exchange(port, f"POST {INFER} HTTP/1.1\r\n".encode() + data)
        expect(data[:60], (b"HTTP/1.1 %d" % code, 1), (answer[:12], answer.count(b"HTTP/1.1 ")))
    full = [socket.create_connection(("127.0.0.1", port)) for _ in range(33)]
    expect("one too many", b"HTTP/1.1 503", full[-1].recv(65536)[:12])
    for connection in full:
        connection.close()
    while ask(port, "GET", "/v2")[0] == 503:  # until the server has seen it
        pass


def check_metrics(port):
    lines = dict(line.rsplit(" ", 1) for line in ask(port, "GET", "/metrics")[2].decode()
                 .splitlines() if not line.startswith("#"))
    expect("rows", str(3 * len(ROWS) + 60 + 8), lines["elastor_rows_total"])
    expect("too large", "1", lines['elastor_requests_total{code="413"}'])
    expect("latencies", lines["elastor_inference_duration_seconds_count"],
           lines['elastor_inference_duration_seconds_bucket{le="+Inf"}'])


server = start("--threads=2", "--max_rows=600", "--max_body_bytes=200000", "--max_connections=32",
               "--request_timeout_s=1", "--drain_delay_s=0.5")
check_bits(server.port)
check_outputs(server.port)
check_mistakes(server.port)
check_connections(server.port)
check_metrics(server.port)
mistake = subprocess.run([PROGRAM, f"--model={MODEL}", f"--port={server.port}"],
                         capture_output=True, text=True)
expect("a port in use", (2, f"elastor_serve: --host=127.0.0.1 --port={server.port}: Address already"
                         " in use; expected an address of this host and a free port\n"),
       (mistake.returncode, mistake.stderr))
# Told to stop while half of a request is there, it answers the whole request.
body = json.dumps({"inputs": columns(ROWS[:1])}).encode()
with socket.create_connection(("127.0.0.1", server.port)) as connection:
    connection.sendall(f"POST {INFER} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode())
    server.send_signal(signal.SIGTERM)
    while ask(server.port, "GET", "/v2/health/ready")[0] == 200:
        pass
    connection.sendall(body)
    expect("the last answer", b"HTTP/1.1 200", connection.recv(65536)[:12])
expect("exit code", 0, server.wait())
sys.exit(failures > 0)
