#!/usr/bin/env python3
"""Keyed tables with every policy: on any spread, and killed at random moments, a run has the bits of an undisturbed one.

keyed_campaign.py TRAINER PREPARE [KILLS]: runs of 150 steps on 1, 3, 4 and 16 ranks, by each plan, with 1 and 2 threads
and both instruction sets; then KILLS (16) kills by SIGKILL for each policy, in runs that go on from deltas with other
ranks, plans and threads. Digests and metrics are compared. Takes some 20 minutes by hand; no test calls it.
"""
import json, os, random, shutil, signal, subprocess, sys, tempfile, time

SCHEMA = """name: "stream"
layout: SYNTHETIC
split { train: 0.9 validation: 0.1 }
synthetic {
  rows: 8000 seed: 1 categorical_fields: 2 ids_per_field: 60 zipf_exponent: 1.1 teacher: LOW_RANK rank: 2 drift: 9
}
"""
# A table takes 70 of some 600 keys.
EXPERIMENT = """model {{ fm {{ }} }}
embedding {{
  width: 4
  init_stddev: 0.1
  tables {{
    fields: ["C1", "C2"] capacity: 70 on_full: EVICT evict_every_steps: 40 eviction {{ {} evict_to: 50 }} {}
  }}
}}
data {{ path: "{}" order: FILE_ORDER }}
optimizer {{ learning_rate: 0.02 sparse: LAZY_ADAM }}
training {{ batch_size: 48 epochs: 1 log_every_steps: 1 eval_every_steps: 50 monitor {{ best_weights: true }} }}
spectrum {{ disabled: true }}
checkpoint {{ every_steps: 30 delta_every_steps: 3 }}
parallel {{ virtual_shards: 16 }}
"""
EXACT = "admission { min_count: 3 count_ttl_steps: 16 }"
SKETCH = "admission { min_count: 3 counter: COUNT_MIN }"
POLICIES = {
    "lru": ("policy: LRU", ""),
    "lru_shared": ("policy: LRU", SKETCH + " unadmitted: SHARED_ROW"),
    "lfu": ("policy: LFU", EXACT),
    "decayed_lfu": ("policy: DECAYED_LFU half_life_steps: 25", SKETCH + " unadmitted: SHARED_ROW"),
    "ttl_steps": ("policy: TTL_STEPS ttl_steps: 6", EXACT),
    "ttl_event_time": ("policy: TTL_EVENT_TIME ttl_seconds: 900", EXACT),
    "l2": ("policy: L2 min_l2: 0.002", SKETCH),
}
PLANS = ("AUTO", "TABLE_WISE", "ROW_WISE", "REPLICATED")
MPIRUN = "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca orte_execute_quiet 1 -np".split()


def start(work, ranks, policy, run, plan, threads, isa, resume=False):
    command = [] if ranks == 1 else [*MPIRUN, str(ranks)]
    command += [TRAINER, f"--experiment={work}/{policy}.textproto", f"--output_dir={work}/{run}",
                f"--set=parallel.plan={plan}", f"--set=parallel.threads={threads}"] + ["--resume"] * resume
    with open(f"{work}/log", "w") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True,
                                env={**os.environ, "ELASTOR_ISA": isa})


def numbers(path):
    """The digest, and the last line of each event, step, split and table, without times."""
    lines = {}
    with open(path + "/metrics.jsonl") as file:
        for record in map(json.loads, file):
            if record["event"] not in ("train", "eval", "tables"):
                continue
            key = tuple(record.get(name) for name in ("event", "step", "split", "table"))
            lines[key] = {name: value for name, value in record.items() if not name.endswith("_s")}
    with open(path + "/summary.json") as file:
        return json.load(file)["state_digest"], lines


def steps_of(path):
    try:
        with open(path + "/metrics.jsonl", errors="replace") as file:
            return sum('"event":"train"' in line for line in file)
    except FileNotFoundError:
        return 0


def kill(process, path):
    os.killpg(process.pid, signal.SIGKILL)
    subprocess.run(["pkill", "-KILL", "-f", f"output_dir={path}"])
    process.wait()
    while subprocess.run(["pgrep", "-f", f"output_dir={path}"], stdout=subprocess.DEVNULL).returncode == 0:
        time.sleep(0.01)


def disturbed_run(work, policy, draw, most):
    """Returns the exit code of its last job, and the kills before it."""
    path, kills = f"{work}/killed", 0
    shutil.rmtree(path, ignore_errors=True)
    while True:
        process = start(work, draw.choice((1, 1, 2, 3, 4)), policy, "killed", draw.choice(PLANS), draw.choice((1, 2)),
                        draw.choice(("v3", "v4")), os.path.exists(path))
        if kills == min(3, most):
            return process.wait(), kills
        # Once more steps are logged, or at once, while it starts.
        goal = steps_of(path) + draw.randint(1, 45) if draw.random() < 0.85 else 0
        while process.poll() is None and steps_of(path) < goal:
            time.sleep(0.001)
        time.sleep(0.02 * draw.random())
        if process.poll() is not None:
            return process.returncode, kills
        kill(process, path)
        kills += 1


def campaign(work, kills_each):
    with open(f"{work}/schema.textproto", "w") as file:
        file.write(SCHEMA)
    subprocess.run([PREPARE, f"--schema={work}/schema.textproto", f"--output_dir={work}/data"], check=True,
                   stdout=subprocess.DEVNULL)
    expected, wrong, runs, kills = {}, 0, 0, 0

    def judge(policy, run, code, what):
        if code == 0 and numbers(f"{work}/{run}") == expected[policy]:
            return 0
        with open(f"{work}/log") as log:
            print(f"{policy}, {what}: exit code {code}, or other numbers: {log.read()[-400:]}", flush=True)
        return 1

    for policy, (eviction, admission) in POLICIES.items():
        with open(f"{work}/{policy}.textproto", "w") as file:
            file.write(EXPERIMENT.format(eviction, admission, work + "/data"))
        if start(work, 1, policy, policy, "AUTO", 1, "v3").wait() != 0:
            sys.exit(f"{policy}: {open(work + '/log').read()}")
        expected[policy] = numbers(f"{work}/{policy}")
        left = [table["evicted"] / (table["evicted"] + table["rows"])
                for key, table in expected[policy][1].items() if key[0] == "tables" and table["evicted"]]
        print(f"{policy}: {expected[policy][0]}, {len(left)} passes, of which {sum(x >= 0.2 for x in left)} remove 20 % "
              "of the rows or more", flush=True)
    for policy in POLICIES:
        for number, (ranks, plan) in enumerate((r, p) for r in (1, 3, 4, 16) for p in PLANS):
            if ranks == 16 and plan in PLANS[:2]:
                continue
            where = (ranks, policy, "spread", plan, 1 + number % 2, ("v3", "v4")[number // 2 % 2])
            shutil.rmtree(f"{work}/spread", ignore_errors=True)
            wrong += judge(policy, "spread", start(work, *where).wait(), where)
            runs += 1
    print(f"{runs} runs on 1, 3, 4 and 16 ranks", flush=True)
    draw = random.Random(1)
    for policy in POLICIES:
        left = kills_each
        while left > 0:
            code, killed = disturbed_run(work, policy, draw, left)
            wrong += judge(policy, "killed", code, f"{killed} kills")
            kills, left = kills + killed, left - killed
    print(f"{kills} kills; {wrong} runs with other numbers")
    return wrong


if len(sys.argv) not in (3, 4) or not all(map(os.path.isfile, sys.argv[1:3])):
    sys.exit("expected keyed_campaign.py TRAINER PREPARE [KILLS], two programs and a number")
TRAINER, PREPARE = map(os.path.abspath, sys.argv[1:3])
with tempfile.TemporaryDirectory() as folder:
    sys.exit(campaign(folder, int(sys.argv[3]) if len(sys.argv) > 3 else 16) > 0)
