"""Damaged requests for an elastor_serve that runs already; by hand.

    python3 tests/faults/serve_requests.py PORT REQUESTS [SEED]

Requests of every form are changed, cut and mixed with words that steer HTTP or JSON, or given up
half way. The server must answer each with a code, or go on waiting for the rest of it, and in the
end score as before. Prints how often each came, and the server's memory.
"""
import json
import random
import re
import socket
import struct
import sys
import time

PORT, REQUESTS = int(sys.argv[1]), int(sys.argv[2])
dice = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
WORDS = [b"-1", b"1e999", b"null", b"[", b"]", b"{", b"}", b'"', b"\\u0000", b"2147483647",
         b"18446744073709551616", b"FP32", b"INT64", b"BYTES", b"\r\n", b"\0", b"\xff" * 4, b"true",
         b"encoded", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"HTTP/1.0",
         b"Expect: 100-continue\r\n", b"Inference-Header-Content-Length: 9\r\n"]


def connect():
    return socket.create_connection(("127.0.0.1", PORT))


def get(path):
    with connect() as connection:
        connection.sendall(b"GET %s HTTP/1.1\r\nConnection: close\r\n\r\n" % path)
        return b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")[2]


METADATA = json.loads(get(b"/v2/models/model"))


def post(body, headers=b""):
    return (b"POST /v2/models/model/infer HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n" %
            (headers, len(body)) + body)


def in_json(rows):
    inputs = [{"name": i["name"], "datatype": "BYTES", "shape": [rows, 1], "data": ["1"] * rows}
              for i in METADATA["inputs"]]
    return json.dumps({"id": "1", "inputs": inputs,
                       "outputs": [{"name": "logit"}, {"name": "probability"}]}).encode()


def in_binary(rows):
    inputs, parts = [], b""
    for i in METADATA["inputs"]:
        element = struct.pack("<d", 1.5) if i["datatype"] == "FP64" else struct.pack("<I", 1) + b"1"
        datatype = "FP64" if i["datatype"] == "FP64" else "BYTES"
        inputs.append({"name": i["name"], "datatype": datatype, "shape": [rows],
                       "parameters": {"binary_data_size": len(element) * rows}})
        parts += element * rows
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    return post(head + parts, b"Inference-Header-Content-Length: %d\r\n" % len(head))


def whole():
    kind = dice.randrange(5)
    if kind == 0:
        return in_binary(dice.randrange(4))
    if kind == 1:
        body = in_json(1)
        return (b"POST /v2/models/model/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" %
                len(body) + body + b"\r\n0\r\n\r\n")
    if kind == 2:
        return b"GET %s HTTP/1.1\r\n\r\n" % dice.choice([b"/metrics", b"/v2", b"/v2/models/model"])
    return post(in_json(dice.randrange(4)))


def damaged(request, body_alone):
    begin = request.find(b"\r\n\r\n") + 4 if body_alone else 0
    changed = bytearray(request)
    for _ in range(dice.choice([1, 1, 1, 2, 4, 8])):
        at = dice.randrange(begin, max(len(changed), begin) + 1)
        word = dice.choice(WORDS)
        kind = dice.randrange(4)
        if kind == 0:
            changed[at:at + 1] = bytes([dice.randrange(256)])
        elif kind == 1:
            changed[at:at] = word
        elif kind == 2:
            changed[at:at + len(word)] = word
        else:
            del changed[at:at + dice.randrange(1, 12)]
    head, end, body = bytes(changed).partition(b"\r\n\r\n")
    if body_alone:
        head = re.sub(rb"\nContent-Length: \d+", b"\nContent-Length: %d" % len(body), head)
    return head + end + body


def score():
    with connect() as connection:
        connection.sendall(in_binary(3).replace(b" HTTP/1.1", b" HTTP/1.0", 1))
        return b"".join(iter(lambda: connection.recv(65536), b""))


before = score()
assert before.startswith(b"HTTP/1.1 200"), before
found = {}
start = time.time()
connection, connections = None, 0
for _ in range(REQUESTS):
    if connection is None:
        connection, connections = connect(), connections + 1
    kind = dice.choice(["whole", "body", "body", "body", "any"])
    request = whole() if kind == "whole" else damaged(whole(), kind == "body")
    # What is damaged anywhere may be half of a request for ever.
    connection.settimeout(5 if kind == "whole" else 0.02)
    ends = kind == "any" or dice.random() < 0.3
    try:
        connection.sendall(request)
        if dice.random() < 0.02:
            what, ends = "given up", True
        else:
            answer = connection.recv(65536)
            what = answer[9:12].decode() or "closed"
            ends = ends or b"Connection: close" in answer
    except (socket.timeout, ConnectionError) as error:
        what, ends = type(error).__name__, True
    found[what] = found.get(what, 0) + 1
    if ends:
        connection.close()
        connection = None
assert score() == before, "it scores otherwise than before"
memory = re.search(rb"\nelastor_resident_memory_bytes (\S+)", get(b"/metrics"))[1].decode()
print(f"{REQUESTS} requests on {connections} connections in {time.time() - start:.0f} s: {found}; {memory} bytes")
