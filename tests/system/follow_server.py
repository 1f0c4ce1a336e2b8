"""elastor_serve --follow as its clients see it: not ready before the first base, then the scores of
each version under its digest, its number, age and lag in /metrics; a damaged delta changes nothing.

Arguments: the server, publications, a new folder, raw rows between tabs, their fields between commas,
the files of expected probabilities without -NUMBER. Prints a line for each thing that is not so.
"""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

PROGRAM, PUBLISHED, FOLLOWED, VALUES, FIELDS, EXPECTED = sys.argv[1:]
FIELDS = FIELDS.split(",")
ROWS = [line.rstrip("\n").split("\t") for line in open(VALUES)]
failures = 0


def expect(what, expected, found):
    global failures
    if expected != found:
        failures += 1
        print(f"FAILED: {what}: expected {expected!r}, found {found!r}")


def ask(method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, body)
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer


def metric(name):
    found = re.search(rf"^{name} (.*)$", ask("GET", "/metrics")[1], re.MULTILINE)
    return float(found[1]) if found else None


def wait_for(what, reached):
    end = time.monotonic() + 60
    while not reached():
        if time.monotonic() > end:
            sys.exit(f"FAILED: {what} within a minute")
        time.sleep(0.02)


def bring(name):
    shutil.copytree(f"{PUBLISHED}/{name}", f"{FOLLOWED}/{name}.partial")
    os.rename(f"{FOLLOWED}/{name}.partial", f"{FOLLOWED}/{name}")


def check(number):
    wait_for(f"number {number}", lambda: metric("elastor_model_number") == number)
    request = {"inputs": [{"name": name, "datatype": "BYTES", "shape": [len(ROWS)],
                           "data": [row[i] for row in ROWS]} for i, name in enumerate(FIELDS)]}
    code, body = ask("POST", "/v2/models/ads/infer", json.dumps(request))
    expect("code", 200, code)
    body = json.loads(body)
    expect(f"scores of number {number}", open(f"{EXPECTED}-{number}").read().split(),
           ["%.9g" % value for value in body["outputs"][0]["data"]])
    metadata = json.loads(ask("GET", "/v2/models/ads")[1])
    expect("version", [body["model_version"]], metadata["versions"])
    expect("number", number, metadata["parameters"]["number"])


server = subprocess.Popen([PROGRAM, f"--follow={FOLLOWED}", "--follow_interval_s=0.02", "--port=0",
                           "--name=ads"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
port = int(server.stdout.readline().split("/v2")[0].rsplit(":", 1)[1])
expect("ready without a base", 503, ask("GET", "/v2/health/ready")[0])
expect("a model without a base", 503, ask("POST", "/v2/models/ads/infer", "{}")[0])
expect("live without a base", 200, ask("GET", "/v2/health/live")[0])
expect("a number without a base", 0, metric("elastor_model_number"))
os.mkdir(FOLLOWED)
bring("base-0000000001")
check(1)
expect("ready", 200, ask("GET", "/v2/health/ready")[0])
bring("delta-0000000002")
check(2)
expect("updates", 2, metric("elastor_updates_total"))
expect("lag", 0, metric("elastor_publications_lag"))
expect("age", True, 0 <= metric("elastor_model_age_seconds") < 86400)
bring("delta-0000000004")
wait_for("a lost delta to count", lambda: metric("elastor_failed_updates_total") > 0)
expect("lag", 2, metric("elastor_publications_lag"))
check(2)
bring("delta-0000000003")
check(4)
os.rename(FOLLOWED, FOLLOWED + ".away")
open(FOLLOWED, "w").close()
failed = metric("elastor_failed_updates_total")
wait_for("looks that fail to count", lambda: metric("elastor_failed_updates_total") > failed + 1)
server.send_signal(signal.SIGTERM)
expect("exit code", 0, server.wait(60))
lines = server.stderr.read()
expect("a line on the lost delta", True, "number 3 is missing" in lines)
sys.exit(failures > 0)
